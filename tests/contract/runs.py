"""Runs of the command, whose numbers are kept in a file and compared with fresh ones.

`python -m tests.contract.runs` writes the file anew; whoever does that says why.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from tests.conftest import FILLERS, WORDS, toy_rows
from tests.contract.golden import numbers_of
from tests.programs import called_for_text

FILE = Path(__file__).with_name("runs.json")
_AANG = ["method=aang", "auxiliary=aang_td"]
CASES: dict[str, list[str]] = {
    "finetune": ["method=finetune", "auxiliary=none"],
    "tapt": ["method=tapt", "auxiliary=tapt"],
    "dapt_tapt": ["method=dapt_tapt"],
    "mt_tartan": ["method=mt_tartan"],
    "meta_tartan": ["method=meta_tartan"],
    "baseline": ["method=meta_tartan", "+stage@fine_tuning_baseline=finetune"],
    "padded": ["method=meta_tartan", "packed=false", "micro_batch_size=7"],
    "tapt_meta_tartan": ["method=tapt_meta_tartan", "auxiliary=tapt"],
    "aang": _AANG,
}
"""The options of each run, beside those of `options_of`."""
DIGITS = ["+experiment=digits_meta", "max_steps=5", "trainer.precision=64-true"]


def write_toy(folder: Path) -> None:
    """Write the toy task and a domain's text into `folder`."""
    for split, rows in toy_rows().items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    texts = [f"the {w} is {a} and {b}" for w in WORDS for a in FILLERS for b in FILLERS]
    (folder / "corpus.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def options_of(case: str) -> list[str]:
    """Return the options of a run of six steps in float64 in the folder of `write_toy`."""
    options = CASES[case]
    without = ("auxiliary=none", "auxiliary=tapt", "auxiliary=aang_td")
    dapt = [] if set(without) & set(options) else ["auxiliary.dapt.path=corpus.txt"]
    return [
        *options, *dapt, "encoder=tiny", "task=files", "task.train=train.jsonl",
        "task.dev=dev.jsonl", "task.test=test.jsonl", "task.name=toy", "task.max_length=32",
        "cache_dir=cache", "max_steps=6", "trainer.precision=64-true",
        "trainer.enable_progress_bar=false", "hydra.run.dir=run",
    ]  # fmt: skip


def run(options: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `python -m src.run OPTIONS` in `folder`."""
    return called_for_text("src.run", *options, cwd=folder)


def outcome_of(run_folder: Path) -> dict[str, Any]:
    """Return what of a finished run depends on config, data and seed alone."""
    result = json.loads((run_folder / "result.json").read_text(encoding="utf-8"))
    same = ("labels", "dev", "test", "chosen", "final_task_weights", "cost", "fingerprints")
    outcome = {name: result[name] for name in same if name in result}
    outcome["stages"] = [
        {name: stage[name] for name in ("name", "steps", "best_step", "cost", "evaluations")}
        for stage in result["stages"]
    ]
    outcome["weights"] = numbers_of(load_file(run_folder / "classifier" / "model.safetensors"))
    return outcome


def main() -> None:
    """Write the outcomes of all cases."""
    outcomes = {}
    for case in [*CASES, "digits"]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_toy(folder)
            options = [*DIGITS, "hydra.run.dir=run"] if case == "digits" else options_of(case)
            done = run(options, folder)
            if done.returncode:
                sys.exit(f"{case}: {done.stderr}")
            outcomes[case] = outcome_of(folder / "run")
    lines = (f"{json.dumps(case)}: {json.dumps(outcome)}" for case, outcome in outcomes.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
