"""A run's folder: its name, one process in it, the same options and data; read as plain data."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError, printable
from tartan.files import check_written_folder, digest_of, process_lock, read_yaml
from tartan.launch import is_main_process
from tartan.settings import differing

NOT_OF_TRAINING = (
    "data_dir", "cache_dir", "paths", "num_workers", "logger", "hydra", "run", "resume", "verbose",
    "checkpoint_minutes", "trainer.enable_progress_bar", "trainer.log_every_n_steps",
    "trainer.devices", "trainer.num_nodes", "trainer.strategy",
)  # fmt: skip
"""Options about places, display or machines, which do not change what is trained."""
RESULT = "result.json"
"""File in a run folder whose presence says that the run is finished."""
INPUTS = "inputs.json"
"""File with fingerprints of the data that a run was started with."""
CONFIG = "config.yaml"
LOCK = "run.lock"
LATEST = "latest"
"""Name of the classifier of the run that finished last."""
ELSEWHERE = "name another folder: hydra.run.dir=FOLDER, for a sweep hydra.sweep.dir=FOLDER"
_PLACES = ("hydra.searchpath=", "hydra.sweep.dir=", "hydra.sweep.subdir=")


def run_name(overrides: Sequence[str], task: str, method: str, seed: int) -> str:
    """Return the folder of a command line's run, relative to the folder of all runs.

    E.g. `acl_arc_meta/auxiliary.size=10,seed=1`; where that would be long, the options' values and
    a digest of all options: `custom/labels-texts-minilm-seed0-3f2a9c`. Where the overrides name no
    experiment, `task` and `method` do.
    """
    experiment = f"{task}_{method}"
    options: dict[str, str] = {}
    for override in as_given(overrides):
        key, _, value = override.lstrip("+~").partition("=")
        if key == "experiment":
            experiment = value
        elif not _changes_no_training(option_of(override)) and key != "seed":
            options[key] = value
    whole = options | {"seed": str(seed)}
    exact = ",".join(f"{key}={whole[key]}" for key in sorted(whole))
    name = re.sub(r"[^A-Za-z0-9._+=,@-]+", "-", exact)
    above = re.sub(r"[^A-Za-z0-9._+-]+", "-", experiment)
    if len(name) <= 40:
        return f"{above}/{name}"
    digest = digest_of(exact)[:6]
    keys = sorted(options, key=lambda key: (not key.startswith("task"), key))
    files = (PurePath(options[key].strip("'\"")).name for key in keys)
    # of a path the last part, without its ending; a decimal point stays
    values = (re.sub(r"\.[A-Za-z]\w*$", "", file) for file in files)
    words = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", value).strip("-.") for value in values)
    return f"{above}/{words[:30].strip('-.')}-seed{seed}-{digest}"


def as_given(overrides: Sequence[str]) -> list[str]:
    """Return Hydra's overrides as they were given, with interpolations that are not resolved."""
    if OmegaConf.is_config(overrides):
        overrides = cast(list[str], OmegaConf.to_container(overrides, resolve=False))
    return list(overrides)


def option_of(override: str) -> str:
    """Return the dotted name of the option that an override sets."""
    return re.sub(r"[/@]", ".", override.lstrip("+~").partition("=")[0])


def command_of(hydra: Any) -> str:
    """Return the command that runs a job alone (see `arguments_of`)."""
    return shlex.join(["tartan", "run", *arguments_of(hydra)])


def arguments_of(hydra: Any) -> list[str]:
    """Return a job's arguments from Hydra's own settings, a config or read from a file."""
    if OmegaConf.is_config(hydra):
        hydra = OmegaConf.to_container(hydra, resolve=False)
    sources = hydra["runtime"]["config_sources"]
    folders = [source["path"] for source in sources if source["provider"] == "command-line"]
    places = [option for option in hydra["overrides"]["hydra"] if option.startswith(_PLACES)]
    flags = [f"--config-dir={folder}" for folder in folders[:1]]
    return [*flags, *hydra["overrides"]["task"], *places]


@contextmanager
def exclusive_run(folder: Path) -> Iterator[None]:
    """Lock the run folder until the process ends, even if it is killed.

    Other processes of the same distributed run take no lock; the main process holds it for them.

    Raises:
        BusyError: another process is running there.
        UserError: a link in the folder leads elsewhere.
    """
    if not is_main_process():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    check_written_folder(folder)
    busy = f"another process is running in {folder}; wait for it, or {ELSEWHERE}"
    with process_lock(folder / LOCK, busy):
        yield


def check_same_config(config: DictConfig, folder: Path) -> None:
    """Raise a `UserError` if `folder` holds a run, finished or not, of another config."""
    if not (folder / CONFIG).is_file():
        return
    stored, new = stored_options(folder), options_of(config)
    if changed := differing(stored, new):
        name, more = changed[0], f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UserError(
            f"{folder} holds another run: {name} is {stored.get(name)!r} there, "
            f"{new.get(name)!r} here{more}; {ELSEWHERE}"
        )


def check_same_inputs(inputs: Mapping[str, str], folder: Path) -> None:
    """Raise a `UserError` if the run in `folder` was started with other data."""
    path = folder / INPUTS
    if path.is_file() and (changed := differing(_read(path), inputs)):
        raise UserError(
            f"{folder} was started with other data ({', '.join(changed)} changed); put them back, "
            f"or {ELSEWHERE}"
        )


def options_of(config: DictConfig) -> dict[str, Any]:
    """Return the options that change the training, by dotted name."""
    return dict(_leaves(OmegaConf.to_container(config, resolve=True)))


def stored_options(folder: Path) -> dict[str, Any]:
    """Return the options of the run in `folder` as `options_of` does; `UserError` if damaged."""
    return dict(_leaves(_read(folder / CONFIG)))


def _read(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML or JSON file; `UserError` where it is damaged."""
    try:
        content = read_yaml(path)
        if not isinstance(content, dict):
            raise UserError("no mapping")
    except UserError as error:
        raise UserError(
            f"{path} is damaged ({error}); remove the folder, and run the same command again"
        ) from error
    return content


def _leaves(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield options by dotted name, without those that do not change the training."""
    if not isinstance(node, dict):
        yield key, node
        return
    for name, value in node.items():
        option = f"{key}.{name}" if key else str(name)
        # what a task refers to lies elsewhere too; the data themselves are recognised
        if not _changes_no_training(option) and name not in ("cache_dir", "data_dir"):
            yield from _leaves(value, option)


def _changes_no_training(option: str) -> bool:
    return any(option == name or option.startswith(f"{name}.") for name in NOT_OF_TRAINING)


def model_folder(name: str, runs_dir: str) -> Path:
    """Return the folder `name`; for `latest` that of the run that finished last, and print it."""
    model, runs = Path(name).expanduser(), Path(runs_dir).expanduser()
    if name != LATEST or model.exists():
        return model
    results = [r for r in runs.rglob(f"[!.]*/{RESULT}") if (r.parent / "classifier").is_dir()]
    if not results:
        raise UserError(f"model={LATEST}: no finished run with a classifier below {runs}")
    model = max(results, key=lambda result: result.stat().st_mtime_ns).parent
    print(printable(f"model {model}"), flush=True)
    return model
