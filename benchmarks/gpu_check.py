"""`python -m benchmarks.gpu_check`: run the tests and measurements that need a GPU.

Nothing is installed or fetched. Options: `items=core,bench` chooses items (all without it),
`device=cpu` is a dry run with tiny sizes on a machine without a GPU. Each part of an item takes
minutes; one that is not over after ten has failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import torch

from tartan.core.seeding import generator_for

OUTPUT = Path("gpu_check")
"""Folder of texts and the bench's figures."""
SHAPES = {"cuda": ((128, 128), (32, 512)), "cpu": ((4, 16),)}
"""Numbers of examples in a batch, each with the length of the longest text [tokens]."""
ENCODERS = {"cuda": "roberta_base_random", "cpu": "tiny"}
WORDS = "the of and in to was is for on as with by at from his an were are which this"
PROCESSES = "tests/methods/test_processes.py"
TESTS = {
    "core": ["tests/core"],
    "methods": ["tests/methods"],
    "kernels": ["tests/kernels/test_on_gpu.py"],
    "runs": ["tests/kernels/test_gpu_runs.py"],
    "processes": [
        f"{PROCESSES}::test_two_processes_give_the_run_of_one_also_after_a_kill",
        f"{PROCESSES}::test_a_sharded_body_is_trained_as_a_whole_one",
    ],
}
"""Tests of each item; those of `processes` need two GPUs."""
PARALLEL = ("core", "methods")
"""Items whose tests run in as many processes as there are cores, or one would take too long."""
ITEMS = (*TESTS, "bench", "waits")
TIMEOUT_S = 600
"""Time after which a part has failed [s]."""
NO_TESTS = 5
"""Exit code of pytest where it chose no tests."""


def parts_of(item: str, device: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the arguments of Python of each part of an item."""
    if item in TESTS:
        for chosen in TESTS[item]:
            fast = ["-m", "not slow and not processes and not manual"] if item == "methods" else []
            # -v: a part that is stopped has named what failed
            many = ["-n", "auto", "--dist", "worksteal", "-v"] if item in PARALLEL else ["-q"]
            yield chosen, ["-m", "pytest", "-p", "no:cacheprovider", *many, *fast, chosen]
        return
    for batch, longest in SHAPES[device]:
        texts = folder / f"texts-{longest}"
        write_texts(texts, longest, batch)
        for dropout in (True, False):
            sections = ("waits",) if item == "waits" else ("floor", "peers", "memory")
            for section in sections:
                name = f"{section} {batch} x {longest}{'' if dropout else ', no attention dropout'}"
                yield name, bench_of(section, batch, texts, device, dropout=dropout)


def bench_of(section: str, batch: int, texts: Path, device: str, *, dropout: bool) -> list[str]:
    """Return the arguments of Python that run a section of the bench on `write_texts`' texts."""
    longest = texts.name.rpartition("-")[2]
    options = [f"task.{split}={texts / split}.jsonl" for split in ("train", "dev", "test")]
    options += ["task.name=made_up", f"task.domain={texts / 'corpus'}.jsonl", "auxiliary.size=all"]
    options.append(f"micro_batch_size={batch}")
    if not dropout and device == "cuda":
        options.append("encoder.attention_dropout=0.0")
    few = ["rounds=1", "warm_up=1"] if device == "cpu" else []
    figures = texts.parent / f"{section}-{batch}x{longest}{'' if dropout else '-no-dropout'}.json"
    return [
        "-m", "benchmarks", f"sections=[{section}]", f"encoders=[{ENCODERS[device]}]",
        f"batch_size={batch}", "data.task=files", f"data.max_length={longest}",
        f"data.corpus={texts / 'corpus'}.jsonl", f"options={json.dumps(options)}",
        f"accelerator={'gpu' if device == 'cuda' else 'cpu'}", f"output={figures}", *few,
    ]  # fmt: skip


def write_texts(folder: Path, longest: int, batch: int) -> None:
    """Write a task and a corpus of random texts of half to one and a half times `longest` tokens.

    Half of them are cut, so that texts have seven eighths of `longest` tokens on average. All words
    are single tokens of the bench's tokenizer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = generator_for(0, "gpu_check", longest)
    for name, batches in (("train", 8), ("dev", 4), ("test", 1), ("corpus", 16)):
        lengths = rng.integers(longest // 2, 3 * longest // 2, batches * batch)
        rows = pd.DataFrame({"text": [" ".join(rng.choice(WORDS.split(), n)) for n in lengths]})
        rows["label"] = (rows.index % 2).map({0: "a", 1: "b"})
        rows.to_json(folder / f"{name}.jsonl", orient="records", lines=True)


def run_part(arguments: Sequence[str], device: str) -> str:
    """Run tests or a bench, whose output goes to the terminal, and return the outcome."""
    began = time.monotonic()
    environment = {**os.environ, "TARTAN_TEST_DEVICE": device}
    try:
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"failed (not finished after {TIMEOUT_S} s)"
    if done.returncode == NO_TESTS and "pytest" in arguments:
        return "skipped (no test applies)"
    if done.returncode:
        return f"failed (exit code {done.returncode})"
    return f"passed ({time.monotonic() - began:.0f} s)"


def main(arguments: Sequence[str]) -> int:
    """Run the chosen items and print their outcomes; return 1 if one failed or cannot be run."""
    given = dict(argument.partition("=")[::2] for argument in arguments)
    chosen, device = given.pop("items", "") or ",".join(ITEMS), given.pop("device", "cuda")
    items = chosen.split(",")
    if given or set(items) - set(ITEMS) or device not in SHAPES:
        print(f"usage: items={','.join(ITEMS)} device=cuda", file=sys.stderr)
        return 1
    if device == "cuda" and not torch.cuda.is_available():
        print("error: there is no GPU that PyTorch can use; device=cpu: a dry run", file=sys.stderr)
        return 1
    outcomes = {}
    for item in items:
        for name, command in parts_of(item, device, OUTPUT.resolve()):
            print(f"\n{item}: {name} ...", flush=True)
            if item == "processes" and device == "cuda" and torch.cuda.device_count() < 2:
                outcomes[f"{item}: {name}"] = "skipped (needs 2 GPUs)"
            else:
                outcomes[f"{item}: {name}"] = run_part(command, device)
    print("\n" + pd.Series(outcomes, name="outcome").to_string())
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
