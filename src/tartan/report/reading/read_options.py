"""Tells which of a run's options its training read, and what they say of modules and corpora."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

from tartan.core.task_names import parts_of
from tartan.report.labels import METHODS, usual_module
from tartan.report.reading.drawn_data import RUNS_SEED, SPLIT_SEED
from tartan.report.reading.run import Run
from tartan.run_folder.result import Result

ENCODER_SEED = "encoder.seed"
"""Option with the seed of an encoder's initial weights, which follows the run's by default."""
_SEEDS = ("seed", SPLIT_SEED)
"""Options that are the run's seed, or said by the data's fingerprints."""
_NEVER = ("evaluation_batch_size", "encoder.lr")
"""Options that train nothing by themselves: the stages' own options hold the encoder's rates."""
_OF_DOMAIN_TEXT = ("auxiliary.size", "auxiliary.seed", "task.domain")
"""Options that only auxiliary tasks on other text than the end task's read."""
_OURS = "tartan.methods."


def read_options(run: Run) -> dict[str, Any]:
    """Return a run's options without its seed, and without those that its training did not read.

    Not read are options of stages that were not run, of auxiliary tasks that no stage trained, of
    the weighting where no stage weighted tasks, of evaluations, and of the fine-tuning baseline,
    which is trained beside the run.
    The seed of the data is left out as well: what it chose is in the fingerprints. The precision is
    the one that was used, where the result tells it: `auto` is another on another machine.
    """
    stages = {stage.name for stage in run.result.stages}
    unread = _unread(run)
    kept = {}
    for name, value in run.options.items():
        place = name.split(".")
        idle = place[:2] == ["method", "stages"] and stages.isdisjoint(place[2:3])
        idle = idle or (place[0] == "auxiliary" and _is_idle(place, run.result))
        idle = idle or place[0] == "fine_tuning_baseline"
        idle = idle or (place[0] == "weighting" and not _weights_tasks(run.result))
        idle = idle or any(name == one or name.startswith(f"{one}.") for one in _NEVER)
        if not (idle or name in _SEEDS or name in unread):
            kept[name] = value
    used = run.result.machine.precision
    return kept | ({"trainer.precision": used} if used else {})


def encoders_by_seed(runs: Iterable[Run]) -> set[Run]:
    """Return the runs whose encoder's seed is taken to be the run's own.

    A config holds `encoder.seed` as a number, also where it follows the run's seed. It is taken to
    do so where the two are equal, and no run of another seed has that number unless its command
    gave it and the other's did not.

    Args:
        runs: runs whose options are equal but for their seeds and `encoder.seed`.
    """
    own = [run for run in runs if ENCODER_SEED in run.options]
    found = set()
    for run in own:
        seed, value = run.result.seed, run.options[ENCODER_SEED]
        others = [o for o in own if o.options[ENCODER_SEED] == value and o.result.seed != seed]
        is_told = not _gives_encoder_seed(run) and all(map(_gives_encoder_seed, others))
        if value == seed and (is_told or not others):
            found.add(run)
    return found


def _gives_encoder_seed(run: Run) -> bool:
    return run.given(ENCODER_SEED) not in (None, RUNS_SEED)


def variant_of(run: Run) -> str:
    """Return the modules with which a method of the paper was not trained as it is, if any.

    E.g. `FixedEmbeddings`; empty for the method itself, for methods of one's own, which have names
    of their own, and where the folder has no config.
    """
    method = run.result.method
    found = []
    for stage in run.result.stages if method in METHODS else ():
        module = run.options.get(f"method.stages.{stage.name}.module")
        usual = usual_module(method, stage.name)
        if module is None or module in [f"{_OURS}{one}" for one in usual]:
            continue
        name = str(module).rpartition(".")[2]
        name = str(module) if name == usual[0].rpartition(".")[2] else name
        found.append(name if stage.name == "joint" else f"{stage.name}: {name}")
    return ", ".join(found)


def given_corpora(run: Run) -> dict[str, str]:
    """Return the paths or Hub names of domain text that the user gave, by auxiliary task.

    Not in it are tasks on the end task's own texts, and on domain text that belongs to the task.
    """
    options, found = run.options, {}
    for name, auxiliary in run.result.auxiliaries.items():
        if auxiliary.kind == "task":
            continue
        place, parts = f"auxiliary.{name}", parts_of(name)
        if parts is not None:  # composed: of the texts that the objective's name begins with
            end = f".data.{parts[0]}.path"
            paths = (o for o in options if o.startswith("auxiliary.") and o.endswith(end))
            place = next(paths, place).removesuffix(".path")
        path, hub = options.get(f"{place}.path"), options.get(f"{place}.hub")
        if hub is not None:
            config = options.get(f"{place}.hub_config")
            found[name] = str(hub) if config is None else f"{hub} {config}"
        else:
            path = options.get("task.domain") if path is None else path
            if isinstance(path, str):
                found[name] = str(PurePosixPath(path))
    return found


def _is_idle(place: Sequence[str], result: Result) -> bool:
    """Return whether an option below `auxiliary` is of a task that no stage trained."""
    # which entry composed objectives are of, their names do not say
    composed = any(parts_of(task) is not None for task in result.auxiliaries)
    of_a_task = len(place) > 2
    other = of_a_task and place[1] not in result.auxiliaries and not composed
    return other or not result.auxiliaries


def _weights_tasks(result: Result) -> bool:
    return result.is_joint or result.weighting is not None


def _unread(run: Run) -> tuple[str, ...]:
    """Return the options of domain text that no trained auxiliary task read."""
    domain = [name for name, one in run.result.auxiliaries.items() if one.kind != "task"]
    if not domain:
        return _OF_DOMAIN_TEXT
    own = [run.options.get(f"auxiliary.{name}.size") for name in domain]
    return ("auxiliary.size",) if None not in own else ()
