"""Says which runs belong together: runs of one setting differ by their seed alone."""

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from tartan.core.task_names import parts_of
from tartan.files import digest_of
from tartan.runs.folder import options_of
from tartan.runs.result import Result

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
SPLIT_SEED = "task.split_seed"
FOLLOWS_SEED = "the run's"
"""Value that stands for the run's seed in options that follow it."""


def identified(result: Result, config: DictConfig) -> Result:
    """Return the result with its ids and label; references of `config` to the seed are open."""
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
    drawn = FOLLOWS_SEED in (options.get(SPLIT_SEED), options.get("auxiliary.seed"))
    # seeds may draw its texts
    apart = {"source", *(("examples", "fingerprint", "decontaminated") if drawn else ())}
    auxiliaries = {name: one.model_dump(exclude=apart) for name, one in result.auxiliaries.items()}
    return _digest([result.method, result.weighting, auxiliaries, options_read(result, options)])


def data_id(result: Result, *, drawn: bool) -> str:
    """Return a digest of what runs that are compared share; of drawn data, without the seed."""
    seed = re.compile(rf"\bseed([ =]){result.seed}\b")
    fingerprints = {
        split: seed.sub(r"seed\1", text) if drawn else text
        for split, text in result.fingerprints.items()
    }
    return _digest([result.task, result.encoder, fingerprints, result.labels, result.metric])


def options_read(result: Result, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the run's training read, without its seed; the precision as used."""
    unread = ["seed", "evaluation_batch_size", "fine_tuning_baseline", "task.split_seed"]
    unread += [] if result.auxiliaries else ["auxiliary."]
    unread += [] if result.is_joint or result.weighting else ["weighting."]
    read = (name for name in options if not name.startswith(tuple(unread)))
    kept = {name: options[name] for name in read if options[name] != FOLLOWS_SEED}
    precision = result.machine.precision
    return kept | ({"trainer.precision": precision} if precision else {})


def label_of(result: Result, options: Mapping[str, Any]) -> str:
    """Return the setting in words, e.g. `META-TARTAN, DAPT 10x (news.txt) + TAPT`."""
    method, weighting = result.method, result.weighting
    learned = "meta" if "meta" in method else "uniform" if "mt" in method else weighting
    details = [variant_of(result, options), weighting if weighting != learned else None]
    shown = ", ".join(filter(None, details))
    label = METHODS.get(method, method) + (f" ({shown})" if shown else "")
    corpora = {name: PurePath(path).name for name, path in corpora_of(result, options).items()}
    sizes = {
        name: f" {one.size if isinstance(one.size, str) else f'{one.size:g}x'}"
        + (f" ({corpora[name]})" if name in corpora else "")
        for name, one in result.auxiliaries.items()
        if one.kind != "task" and result.is_text  # more or fewer by choice
    }
    if method in ("tapt", "dapt", "dapt_tapt"):
        return label + "".join(sizes.values())
    composed = sum(parts_of(name) is not None for name in result.auxiliaries)
    names = [f"{composed} composed objectives"] if composed else []
    for name in result.auxiliaries:
        if parts_of(name) is None:
            title = {"dapt": "DAPT", "tapt": "TAPT"}.get(name, name.replace("_", " "))
            names.append(title + sizes.get(name, ""))
    return label + (f", {' + '.join(names)}" if names else "")


def variant_of(result: Result, options: Mapping[str, Any]) -> str:
    """Return the classes of the user's own with which a method of the paper was trained, if any."""
    modules = [str(options.get(f"method.stages.{s.name}.module") or "") for s in result.stages]
    own = [module for module in modules if module and not module.startswith("tartan.")]
    return ", ".join(own) if result.method in METHODS else ""


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


def _digest(content: Any) -> str:
    return digest_of(json.dumps(content, sort_keys=True, default=str))[:16]
