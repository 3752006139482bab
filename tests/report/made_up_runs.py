"""Run folders as `src.run` leaves them, with scores that a test chooses."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tartan.report.comparison import Benchmark, Setting, benchmarks_of
from tartan.report.runs import Run, read_run
from tartan.runs.folder import stored_options
from tartan.runs.identity import FOLLOWS_SEED, SPLIT_SEED, data_id, label_of, setting_id
from tartan.runs.result import SCHEMA, Result
from tests.in_process import STAGES

KINDS = {"tapt": "task", "dapt": "domain", "news": "domain", "other_classes": "domain"}
WEIGHTINGS = {"mt_tartan": "uniform", "meta_tartan": "meta"}


def result_of(
    method: str,
    seed: int,
    score: float,
    *,
    auxiliaries: Sequence[str] = (),
    size: float | str = 10,
    task: str = "toy",
    encoder: str = "tiny",
    unseen: float | None = None,
    unseen_examples: int = 90,
    dev: float | None = None,
    text: bool = True,
    flops: float | None = None,
    train: int = 50,
    labels: Sequence[str] = ("A", "B", "C"),
    evaluations: int = 5,
) -> dict[str, Any]:
    """What `result.json` would hold; `unseen` is the score of the unseen part (as the whole's)."""
    unseen = score if unseen is None else unseen
    dev = score if dev is None else dev
    counts = np.full((len(labels), len(labels)), 2) + 10 * np.eye(len(labels), dtype=int)
    counts[0, 1] += 3
    tasks = ["end_task", *auxiliaries]
    multiples = 100 if size == "all" else size

    def scores(value: float, examples: int, confusion: bool) -> dict[str, Any]:
        metrics = {"macro_f1": value, "micro_f1": value} if examples else None
        extra = {"confusion": counts.tolist()} if confusion and examples else {}
        return {"examples": examples, "metrics": metrics, **extra}

    stages = []
    for name in STAGES.get(method, ["joint"]):
        seen = tasks if name == "joint" else ["end_task"]
        curve = [[10 * k, dev * (1 - 0.5**k)] for k in range(1, evaluations + 1)]
        stage: dict[str, Any] = {
            "name": name,
            "steps": 10 * evaluations,
            "best_step": 10,
            "skipped": 0,
            "cost": {
                "tokens": dict.fromkeys(seen, 1000 * text),
                "examples": dict.fromkeys(seen, 100),
            },
            "measured": {"seconds": 60.0 + seed},
            "final_task_weights": {one: 1 / len(seen) for one in seen} if len(seen) > 1 else {},
            "evaluations": curve if name in ("joint", "finetune") else [],
        }
        if flops is not None:
            stage["cost"]["flops"] = {one: flops / len(seen) for one in seen}
        stages.append(stage)
    return {
        "schema": SCHEMA,
        "task": task,
        "method": method,
        "weighting": WEIGHTINGS.get(method),
        "encoder": encoder,
        "seed": seed,
        "metric": "macro_f1",
        "labels": list(labels),
        "auxiliaries": {
            name: {
                "kind": KINDS[name],
                "source": "corpus.txt",
                "size": 1 if KINDS[name] == "task" else size,
                "examples": int(train * (1 if KINDS[name] == "task" else multiples)),
                "fingerprint": "f" * 64,
            }
            for name in auxiliaries
        },
        "train": {"examples": train},
        "dev": {"whole": scores(dev, 60, False), "unseen": scores(dev, 60, False)},
        "test": {
            "whole": scores(score, 100, True),
            "unseen": scores(unseen, unseen_examples, True),
        },
        "final_task_weights": {},
        "chosen": {"stage": "finetune", "step": 10},
        "stages": stages,
        "fingerprints": {"train": "a" * 64, "test": "b" * 64},
        "versions": {"python": "3.11"},
        "machine": {"device": "cpu"},
    }


def config_of(result: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> dict:
    """A small `config.yaml` that fits a result; `options` by dotted name."""
    config: dict[str, Any] = {
        "seed": result["seed"],
        "data_dir": "/somewhere",
        "task": {"_target_": "tartan.data.file_task.FileTask", "name": result["task"]},
        "method": {
            "name": result["method"],
            "stages": {stage["name"]: {"max_steps": 50} for stage in result["stages"]},
        },
    }
    if result["method"] == "meta_tartan":
        config["method"]["stages"]["joint"]["meta_head"] = {"kind": "separate"}
    for name, value in (options or {}).items():
        node = config
        *path, last = name.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return config


def write_run(
    folder: Path,
    result: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None = None,
    *,
    overrides: Sequence[str] = (),
    steps: bool = True,
) -> Path:
    """Write a run folder; without a result, an unfinished one."""
    folder.mkdir(parents=True)
    if config is None and result is not None:
        config = config_of(result)
    if config is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
    (folder / ".hydra").mkdir()
    given = {"hydra": [], "task": list(overrides)}
    stored = {"hydra": {"runtime": {"config_sources": []}, "overrides": given}}
    (folder / ".hydra" / "hydra.yaml").write_text(yaml.safe_dump(stored))
    if result is not None:
        content = identified(result, folder, overrides)
        (folder / "result.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
        mixed = [stage for stage in result["stages"] if stage["final_task_weights"]]
        if steps and mixed:
            write_steps(folder, list(mixed[-1]["final_task_weights"]), result["seed"])
    return folder


def identified(result: Mapping[str, Any], folder: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """The result with the ids and the label that a run adds, unless it has some."""
    checked = Result.model_validate_json(json.dumps(result))
    options = stored_options(folder)
    drawn = "task.split_seed=${seed}" in overrides
    return {
        "setting_id": setting_id(
            checked, options | dict.fromkeys([SPLIT_SEED] * drawn, FOLLOWS_SEED)
        ),
        "data_id": data_id(checked, drawn=drawn),
        "label": label_of(checked, options)[:300],
        **result,
    }


def write_drawn(
    folder: Path,
    result: Mapping[str, Any],
    split_seed: int,
    options: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
) -> Path:
    """Write a run that kept 20 labels, chosen by `task.split_seed`; TAPT reads all its texts."""
    train = f"{'a' * 64}, 20 labelled, seed {split_seed}"
    drawn = altered(result, "fingerprints.train", train)
    for name, one in result["auxiliaries"].items():
        if one["kind"] == "task":
            drawn = altered(drawn, f"auxiliaries.{name}.fingerprint", f"tapt:{split_seed}")
    config = config_of(drawn, {"task.split_seed": split_seed, **(options or {})})
    return write_run(folder, drawn, config, overrides=overrides)


def write_steps(folder: Path, tasks: Sequence[str], seed: int, steps: int = 50) -> None:
    """A step log in which the end task's weight grows."""
    rng = np.random.default_rng(seed)
    lines = ["stage,step,task,weight,cosine,loss,gradient_norm"]
    for step in range(1, steps + 1):
        share = 1 / len(tasks) + 0.3 * step / steps + 0.01 * rng.standard_normal()
        for task in tasks:
            weight = share if task == "end_task" else (1 - share) / (len(tasks) - 1)
            lines.append(f"joint,{step},{task},{weight:.6g},,1.5,2")
    (folder / "steps.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_setting(
    root: Path,
    name: str,
    method: str,
    scores: Sequence[float],
    *,
    options: Mapping[str, Any] | None = None,
    unseen: Sequence[float] | None = None,
    **more: Any,
) -> list[Path]:
    """A run for each score, seeds from 0."""
    folders = []
    for seed, score in enumerate(scores):
        other = None if unseen is None else unseen[seed]
        result = result_of(method, seed, score, unseen=other, **more)
        config = config_of(result, options)
        overrides = [f"+experiment={name}", f"seed={seed}"]
        folder = root / name / f"seed={seed}"
        folders.append(write_run(folder, result, config, overrides=overrides))
    return folders


def read_all(root: Path) -> list[Run]:
    """The finished runs below a folder."""
    folders = sorted(path.parent for path in root.rglob("result.json"))
    return [read_run(folder, folder.relative_to(root).as_posix()) for folder in folders]


def bench_of(root: Path, paired: bool = False, holm: bool = False) -> Benchmark:
    """The only bench of the runs below a folder."""
    (bench,) = benchmarks_of(read_all(root), paired, holm)
    return bench


def setting_of(root: Path, method: str) -> Setting:
    """The only setting of a method."""
    (setting,) = (s for s in bench_of(root).settings if s.result.method == method)
    return setting


def altered(result: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a result with another value at a dotted place; `...` removes it."""
    changed = copy.deepcopy(dict(result))
    node: Any = changed
    *before, last = path.split(".")
    for part in before:
        node = node[int(part)] if isinstance(node, list) else node[part]
    if value is ...:
        del node[last]
    else:
        node[int(last) if isinstance(node, list) else last] = value
    return changed
