"""`python -m src.bench.gpu_check`: run the tests and measurements that need a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Literal

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from src.core.seeding import generator_for

OUTPUT = Path("gpu_check")
"""Folder of logs, texts and the bench's figures."""
SHAPES = ((128, 128), (32, 512))
"""Numbers of examples in a batch, each with the length of the longest text [tokens]."""
ENCODER = "roberta_base_random"
PROCESSES = "tests/distributed/test_processes.py"
WORDS = "the of and in to was is for on as with by at from his an were are which this"
TIMEOUT_S = 3600
"""Time after which an item has failed [s]."""

Verdict = Literal["passed", "failed", "measured", "skipped"]


@dataclass(frozen=True)
class Item:
    """A program to run: tests or a bench.

    Attributes:
        name: name in the table.
        arguments: arguments of Python.
        figures: the file that the bench writes; None for tests.
        devices: number of GPUs that it needs.
    """

    name: str
    arguments: Sequence[str]
    figures: Path | None = None
    devices: int = 1


@dataclass(frozen=True)
class Outcome:
    """The outcome of an item.

    Attributes:
        name: the item's name.
        verdict: `passed` for tests, `measured` for a bench, or `failed` or `skipped`.
        detail: the reason or the figures, in one line.
    """

    name: str
    verdict: Verdict
    detail: str


def items(folder: Path) -> list[Item]:
    """Return all items in order; they write their files to `folder`."""
    sharded = f"{PROCESSES}::test_a_sharded_body_is_trained_as_a_whole_one"
    several = f"{PROCESSES}::test_two_processes_give_the_run_of_one_also_after_a_kill"
    return [
        _tests("training steps (tests/core)", "tests/core"),
        _tests("modules and runs (tests/methods)", "tests/methods"),
        _tests("packed against padded in bf16", "tests/cuda/test_on_gpu.py"),
        _tests("equal for a seed, and after a kill", "tests/cuda/test_runs.py"),
        _tests("DDP (NCCL)", several, devices=2),
        _tests("FSDP2 (NCCL)", sharded, devices=2),
        *(_measured(*shape, folder, dropout) for shape in SHAPES for dropout in (True, False)),
    ]


def _tests(name: str, *chosen: str, devices: int = 1) -> Item:
    return Item(name, ["-m", "pytest", "-m", "not manual", *chosen], devices=devices)


def _measured(batch: int, longest: int, folder: Path, dropout: bool) -> Item:
    """Return the bench on texts that fill such batches, with or without attention dropout."""
    name = f"{batch} x {longest}" + ("" if dropout else ", no attention dropout")
    file = folder / f"{batch}x{longest}{'' if dropout else '-no-dropout'}.json"
    texts = folder / f"texts-{longest}"
    options = [f"task.{split}={texts / split}.jsonl" for split in ("train", "dev", "test")]
    corpus = texts / "corpus.txt"
    options += ["task.name=made_up", f"task.domain={corpus}", "auxiliary.size=all"]
    options.append(f"micro_batch_size={batch}")
    if not dropout:
        options.append("+encoder.sizes.attention_probs_dropout_prob=0.0")
    arguments = [
        "-m", "src.bench", "sections=[floor,peers,waits,memory]", f"encoders=[{ENCODER}]",
        f"batch_size={batch}", "data.task=files", f"data.max_length={longest}",
        f"data.corpus={corpus}", f"options={json.dumps(options)}", f"output={file}",
    ]  # fmt: skip
    return Item(name, arguments, figures=file)


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
    words = np.array(WORDS.split())
    rng = generator_for(0, "gpu_check", longest)

    def text() -> str:
        return " ".join(rng.choice(words, int(rng.integers(longest // 2, 3 * longest // 2))))

    for split, size in (("train", 8 * batch), ("dev", 4 * batch), ("test", batch)):
        rows = ({"text": text(), "label": "ab"[number % 2]} for number in range(size))
        lines = [json.dumps(row) + "\n" for row in rows]
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    corpus = [text() + "\n" for _ in range(16 * batch)]
    (folder / "corpus.txt").write_text("".join(corpus), encoding="utf-8")


def run_item(item: Item, devices: int, folder: Path) -> Outcome:
    """Run an item, and log its output to a file in `folder`.

    Args:
        item: the item.
        devices: number of GPUs of this machine.
        folder: folder of the log.
    """
    if devices < item.devices:
        return Outcome(item.name, "skipped", f"needs {item.devices} GPUs, there is {devices}")
    log = folder / f"{''.join(c if c.isalnum() else '_' for c in item.name)}.log"
    environment = {**os.environ, "TARTAN_TEST_DEVICE": "cuda"}
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        try:
            code = subprocess.run(
                [sys.executable, *item.arguments], env=environment, stdout=output,
                stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome(item.name, "failed", f"not finished after {TIMEOUT_S} s; see {log}")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    if code:
        return Outcome(item.name, "failed", f"{lines[-1].strip()}; see {log}")
    if item.figures is not None:
        measured = json.loads(item.figures.read_text(encoding="utf-8"))
        return Outcome(item.name, "measured", summarise(measured))
    return Outcome(item.name, "passed", f"{lines[-1].strip()} ({time.monotonic() - began:.0f} s)")


def summarise(measured: Mapping[str, Any]) -> str:
    """Return the bench's figures in one line: floor, MFU, peers, waits, memory.

    MFU is the step's throughput, divided by that of large square matrix products on the same GPU.
    """
    rate, rows = measured["floor"]["matrix_rate"], measured["floor"]["rows"]
    figures = [
        f"{row['method']} {row['ratio']['median']:.2f} x its floor, MFU "
        f"{row['flops'] / row['seconds'] / rate:.0%} of {rate / 1e12:.0f} TFLOP/s, "
        f"{row['tokens'] / row['seconds']:,.0f} tokens/s, {row['padding_share']:.0%} padding"
        for row in rows
    ]
    figures += [
        f"{row['peer']} ({row['case']}) {row['ratio']['median']:.2f} x this program's step"
        for row in measured["peers"]["rows"]
    ]
    waits = mean(len(row["places"]) for row in measured["waits"]["rows"])
    peak = max(row["peak"] for row in measured["memory"]["rows"])
    return "; ".join([*figures, f"{waits:.1f} waits a step", f"{peak / 2**20:,.0f} MiB a step"])


def outcome_table(outcomes: Sequence[Outcome]) -> Table:
    """Return the table of all outcomes."""
    styles = {"passed": "green", "failed": "bold red", "measured": "cyan", "skipped": "yellow"}
    table = Table(title="on this machine's GPUs", title_justify="left", title_style="bold")
    for column in ("item", "outcome", "detail"):
        table.add_column(column, overflow="fold")
    for outcome in outcomes:
        verdict = f"[{styles[outcome.verdict]}]{outcome.verdict}[/]"
        table.add_row(outcome.name, verdict, outcome.detail)
    return table


def main() -> int:
    """Run all items and print the table; return 1 if one failed or there is no GPU."""
    if not torch.cuda.is_available():
        print("error: gpu_check needs a GPU that PyTorch can use; there is none", file=sys.stderr)
        return 1
    OUTPUT.mkdir(exist_ok=True)
    for batch, longest in SHAPES:
        write_texts(OUTPUT.resolve() / f"texts-{longest}", longest, batch)
    console, outcomes = Console(), []
    for item in items(OUTPUT.resolve()):
        console.print(f"{item.name} ...", highlight=False)
        outcomes.append(run_item(item, torch.cuda.device_count(), OUTPUT.resolve()))
        console.print(f"  {outcomes[-1].verdict}", highlight=False)
    console.print(outcome_table(outcomes))
    return int(any(outcome.verdict == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
