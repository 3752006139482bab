"""`python -m benchmarks.gpu_check`: run the tests and measurements that need a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import torch
from rich.console import Console

from tartan.command_line.tables import titled_table
from tartan.core.seeding import generator_for

OUTPUT = Path("gpu_check")
"""Folder of texts and the bench's figures."""
SHAPES = ((128, 128), (32, 512))
"""Numbers of examples in a batch, each with the length of the longest text [tokens]."""
TESTS = ("tests/core", "tests/methods", "tests/cuda/test_on_gpu.py", "tests/cuda/test_runs.py")
_PROCESSES = "tests/methods/test_processes.py"
TESTS_OF_TWO_GPUS = (
    f"{_PROCESSES}::test_two_processes_give_the_run_of_one_also_after_a_kill",
    f"{_PROCESSES}::test_a_sharded_body_is_trained_as_a_whole_one",
)
WORDS = "the of and in to was is for on as with by at from his an were are which this"
TIMEOUT_S = 3600
"""Time after which an item has failed [s]."""


def bench_of(batch: int, longest: int, folder: Path, *, dropout: bool) -> list[str]:
    """Return the arguments of Python that run the bench on texts that fill such batches.

    Args:
        batch: number of examples in a batch.
        longest: length of the longest text [tokens].
        folder: folder of the figures and, below it, of the texts.
        dropout: whether the encoder has attention dropout.
    """
    texts = folder / f"texts-{longest}"
    corpus = texts / "corpus.jsonl"
    options = [f"task.{split}={texts / split}.jsonl" for split in ("train", "dev", "test")]
    options += ["task.name=made_up", f"task.domain={corpus}", "auxiliary.size=all"]
    options.append(f"micro_batch_size={batch}")
    if not dropout:
        options.append("+encoder.sizes.attention_probs_dropout_prob=0.0")
    figures = folder / f"{batch}x{longest}{'' if dropout else '-no-dropout'}.json"
    return [
        "-m", "benchmarks", "sections=[floor,peers,waits,memory]", "encoders=[roberta_base_random]",
        f"batch_size={batch}", "data.task=files", f"data.max_length={longest}",
        f"data.corpus={corpus}", f"options={json.dumps(options)}", f"output={figures}",
    ]  # fmt: skip


def write_texts(folder: Path, longest: int, batch: int) -> None:
    """Write a task and a corpus of random texts of half to one and a half times `longest` tokens.

    Half of them are cut, so that texts have seven eighths of `longest` tokens on average. All words
    are single tokens of the bench's tokenizer.

    Args:
        folder: the folder to write; created if it does not exist.
        longest: length of the longest text after cutting [tokens].
        batch: number of examples in a batch; there are 8 batches of train and 16 of the corpus.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = generator_for(0, "gpu_check", longest)
    for name, batches in (("train", 8), ("dev", 4), ("test", 1), ("corpus", 16)):
        lengths = rng.integers(longest // 2, 3 * longest // 2, batches * batch)
        rows = pd.DataFrame({"text": [" ".join(rng.choice(WORDS.split(), n)) for n in lengths]})
        rows["label"] = (rows.index % 2).map({0: "a", 1: "b"})
        rows.to_json(folder / f"{name}.jsonl", orient="records", lines=True)


def run_item(arguments: list[str]) -> str:
    """Run tests or a bench, whose output goes to the terminal, and return the outcome."""
    began = time.monotonic()
    environment = {**os.environ, "TARTAN_TEST_DEVICE": "cuda"}
    try:
        subprocess.run([sys.executable, *arguments], env=environment, timeout=TIMEOUT_S, check=True)
    except subprocess.CalledProcessError as error:
        return f"failed (exit code {error.returncode})"
    except subprocess.TimeoutExpired:
        return f"failed (not finished after {TIMEOUT_S} s)"
    return f"passed ({time.monotonic() - began:.0f} s)"


def main() -> int:
    """Run all items and print their outcomes; return 1 if one failed or there is no GPU."""
    if not torch.cuda.is_available():
        print("error: gpu_check needs a GPU that PyTorch can use; there is none", file=sys.stderr)
        return 1
    folder = OUTPUT.resolve()
    pytest = ["-m", "pytest", "-m", "not manual"]
    items = {chosen: [*pytest, chosen] for chosen in (*TESTS, *TESTS_OF_TWO_GPUS)}
    for batch, longest in SHAPES:
        write_texts(folder / f"texts-{longest}", longest, batch)
        for dropout in (True, False):
            name = f"{batch} x {longest}{'' if dropout else ', no attention dropout'}"
            items[name] = bench_of(batch, longest, folder, dropout=dropout)
    table = titled_table("on this machine's GPUs", "item", "outcome")
    outcomes = []
    for name, arguments in items.items():
        print(f"\n{name} ...", flush=True)
        alone = name in TESTS_OF_TWO_GPUS and torch.cuda.device_count() < 2
        outcomes.append("skipped (needs 2 GPUs)" if alone else run_item(arguments))
        table.add_row(name, outcomes[-1])
    Console().print(table)
    return int(any(outcome.startswith("failed") for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
