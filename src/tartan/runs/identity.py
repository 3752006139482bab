"""Says which runs belong together: runs of one setting differ by their seed alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from tartan.core.task_names import parts_of
from tartan.runs.folder import options_of
from tartan.runs.result import Auxiliary, Result

METHODS = {
    "finetune": "Fine-tuning",
    "pretrain": "Pre-training",
    "tapt": "TAPT",
    "dapt": "DAPT",
    "dapt_tapt": "DAPT+TAPT",
    "released_tapt": "TAPT (released)",
    "released_dapt": "DAPT (released)",
    "released_dapt_tapt": "DAPT+TAPT (released)",
    "mt_tartan": "MT-TARTAN",
    "meta_tartan": "META-TARTAN",
    "tapt_mt_tartan": "TAPT then MT-TARTAN",
    "tapt_meta_tartan": "TAPT then META-TARTAN",
    "aang_static": "AANG, static",
    "aang": "AANG",
}
"""The paper's names of methods, in the order of its tables."""
_USUAL_WEIGHTINGS = {"mt": "uniform", "meta": "meta"}
_NAMED_BY_AUXILIARIES = ("tapt", "dapt", "dapt_tapt")
SPLIT_SEED = "task.split_seed"
FOLLOWS_SEED = "the run's"
"""Value that stands for the run's seed in options that follow it."""
_OF_DOMAIN_TEXT = ("auxiliary.size", "auxiliary.seed", "task.domain")


def identified(result: Result, config: DictConfig) -> Result:
    """Return the result with `setting_id`, `data_id` and `label`, by which reports group runs.

    In `config`, references to the seed are not resolved yet.
    """
    shared = options_of(cast(DictConfig, OmegaConf.merge(config, {"seed": FOLLOWS_SEED})))
    return result.model_copy(
        update={
            "setting_id": setting_id(result, shared),
            "data_id": data_id(result, drawn=shared.get(SPLIT_SEED) == FOLLOWS_SEED),
            "label": label_of(result, options_of(config))[:300],
        }
    )


def setting_id(result: Result, options: Mapping[str, Any]) -> str:
    """Return a digest of the method, the auxiliary tasks, and the options that training read."""
    drawn = options.get(SPLIT_SEED) == FOLLOWS_SEED
    auxiliaries = {name: _shared(one, drawn) for name, one in result.auxiliaries.items()}
    return _digest([result.method, result.weighting, auxiliaries, options_read(result, options)])


def data_id(result: Result, *, drawn: bool) -> str:
    """Return a digest of what has to be equal for runs to be compared.

    Where the run's seed chose the examples (`drawn`), fingerprints count without it.
    """
    seed = re.compile(rf"\bseed([ =]){result.seed}\b")
    fingerprints = {
        split: seed.sub(r"seed\1", text) if drawn else text
        for split, text in result.fingerprints.items()
    }
    return _digest([result.task, result.encoder, fingerprints, result.labels, result.metric])


def options_read(result: Result, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the run's training read, without its seed.

    Not read are those of stages and auxiliary tasks that were not trained, of the weighting where
    no stage weighted tasks, and of evaluations. `auto` as precision is another on another machine.
    """
    stages = {stage.name for stage in result.stages}
    weighted = result.is_joint or result.weighting is not None
    trained = result.auxiliaries
    composed = any(parts_of(task) is not None for task in trained)
    domain = [name for name, one in trained.items() if one.kind != "task"]
    sized = [options.get(f"auxiliary.{name}.size") is not None for name in domain]

    def read(name: str) -> bool:
        match name.split("."):
            case ["seed" | "evaluation_batch_size" | "fine_tuning_baseline", *_]:
                return False
            case ["task", "split_seed"] | ["encoder", "lr", *_]:  # stages hold the rates
                return False
            case ["method", "stages", stage, *_]:
                return stage in stages
            case ["weighting", *_]:
                return weighted
            case ["auxiliary", task, _, *_] if not composed and task not in trained:
                return False
        if name in _OF_DOMAIN_TEXT:
            return bool(domain) and not (name == "auxiliary.size" and all(sized))
        return bool(trained) or not name.startswith("auxiliary.")

    kept = {n: value for n, value in options.items() if value != FOLLOWS_SEED and read(n)}
    precision = result.machine.precision
    return kept | ({"trainer.precision": precision} if precision else {})


def label_of(result: Result, options: Mapping[str, Any]) -> str:
    """Return the setting in words, e.g. `META-TARTAN, DAPT 10x (news.txt) + TAPT`."""
    method = result.method
    label = METHODS.get(method, method)
    variant = variant_of(result, options)
    label += f" ({variant})" if variant else ""
    corpora = {name: PurePath(path).name for name, path in corpora_of(result, options).items()}
    sizes = {
        name: f"{one.size if isinstance(one.size, str) else f'{one.size:g}x'}"
        + (f" ({corpora[name]})" if name in corpora else "")
        for name, one in result.auxiliaries.items()
        if one.kind != "task"  # more or fewer by choice
    }
    if method in _NAMED_BY_AUXILIARIES:
        return " ".join([label, *sizes.values()])
    usual = _USUAL_WEIGHTINGS.get(method.removesuffix("_tartan").removeprefix("tapt_"))
    if usual and result.weighting not in (None, usual):
        label += f" ({result.weighting})"
    composed = [name for name in result.auxiliaries if parts_of(name) is not None]
    names = [f"{len(composed)} composed objectives"] if composed else []
    names += sorted({f"domain text {sizes[name]}" for name in composed if name in sizes})
    for name in result.auxiliaries:
        if name not in composed:
            title = {"dapt": "DAPT", "tapt": "TAPT"}.get(name, name.replace("_", " "))
            names.append(f"{title} {sizes.get(name, '') if result.is_text else ''}".rstrip())
    return ", ".join([label, *([" + ".join(names)] if names else [])])


def variant_of(result: Result, options: Mapping[str, Any]) -> str:
    """Return the modules with which a method of the paper was not trained as it is, if any."""
    learned = result.method in ("meta_tartan", "tapt_meta_tartan", "aang")
    others = []
    for stage in result.stages if result.method in METHODS else ():
        module = str(options.get(f"method.stages.{stage.name}.module") or "")
        package, _, name = module.rpartition(".")
        usual = "FineTuning" if stage.name.endswith("finetune") else "ContinuedPretraining"
        if stage.name == "joint":
            usual = "MetaTartan" if learned else "MTTartan"
        if module and not (package.startswith("tartan.") and name == usual):
            shown = module if name == usual else name
            others.append(shown if stage.name == "joint" else f"{stage.name}: {shown}")
    return ", ".join(others)


def corpora_of(result: Result, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the path or Hub name of domain text that the user named, by auxiliary task."""
    corpora = {}
    for name, one in result.auxiliaries.items():
        data = (parts_of(name) or [name])[0]  # a composed objective's name begins with its text's
        ends = (f".{data}.hub", f".{data}.path")
        named = [v for o, v in options.items() if o.startswith("auxiliary.") and o.endswith(ends)]
        paths = [path for path in (*named, options.get("task.domain")) if isinstance(path, str)]
        if one.kind != "task" and paths:
            corpora[name] = paths[0]
    return corpora


def _shared(auxiliary: Auxiliary, drawn: bool) -> dict[str, Any]:
    """Return what runs of one setting share of an auxiliary task; seeds may draw its texts."""
    if not drawn:
        return auxiliary.model_dump(exclude={"source"})
    source = PurePath(auxiliary.source).name
    shared: dict[str, Any] = {"kind": auxiliary.kind, "size": auxiliary.size, "source": source}
    if auxiliary.kind != "task" and auxiliary.decontaminated is None:
        # of texts that were chosen from a corpus it ends in their number, and a seed
        shared["fingerprint"] = re.sub(r":\d+:(-?\d+)$", r":\1", auxiliary.fingerprint)
    return shared


def _digest(content: Any) -> str:
    """Return a hash of plain values, the same of equal numbers: a config may have 30 or 30.0."""
    text = json.dumps(content, sort_keys=True, default=str)
    equal = json.loads(text, parse_float=lambda n: int(float(n)) if float(n) % 1 == 0 else float(n))
    return hashlib.sha256(json.dumps(equal, sort_keys=True).encode()).hexdigest()[:16]
