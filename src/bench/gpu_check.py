"""`python -m src.bench.gpu_check`: run on this machine's GPUs what a CPU could not show."""

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
"""Examples of a batch, and its longest text in tokens."""
ENCODER = "roberta_base_random"
PROCESSES = "tests/distributed/test_processes.py"
WORDS = "the of and in to was is for on as with by at from his an were are which this"
PATIENCE_S = 3600
"""After which an item has failed."""

Verdict = Literal["passed", "failed", "measured", "skipped"]


@dataclass(frozen=True)
class Item:
    """Something to run.

    Attributes:
        name: in the table.
        arguments: for this Python.
        figures: the file that the bench writes; None for tests.
        devices: GPUs that it needs.
    """

    name: str
    arguments: Sequence[str]
    figures: Path | None = None
    devices: int = 1


@dataclass(frozen=True)
class Outcome:
    """How an item went.

    Attributes:
        name: the item's.
        verdict: of tests `passed`, of the bench `measured`.
        detail: in a line.
    """

    name: str
    verdict: Verdict
    detail: str


def items(folder: Path) -> list[Item]:
    """Return all items, in their order; their files are written to `folder`."""
    sharded = f"{PROCESSES}::test_a_sharded_body_is_trained_as_a_whole_one"
    several = f"{PROCESSES}::test_two_processes_give_the_run_of_one"
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
    """The bench on texts that fill such batches, with the encoder's attention dropout or none."""
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
    """Write a task of made-up texts of half to one and a half times `longest` tokens, and a corpus.

    Half of them are cut: a batch's texts have seven eighths of `longest` tokens on average. The
    words are single tokens of the bench's tokenizer.
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


def outcome_of(item: Item, devices: int, folder: Path) -> Outcome:
    """Run an item, its output in a log in `folder`.

    Args:
        devices: GPUs of this machine.
    """
    if devices < item.devices:
        return Outcome(item.name, "skipped", f"needs {item.devices} GPUs, here is {devices}")
    log = folder / f"{''.join(c if c.isalnum() else '_' for c in item.name)}.log"
    environment = {**os.environ, "TARTAN_TEST_DEVICE": "cuda"}
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        try:
            code = subprocess.run(
                [sys.executable, *item.arguments], env=environment, stdout=output,
                stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome(item.name, "failed", f"not over after {PATIENCE_S} s; see {log}")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    if code:
        return Outcome(item.name, "failed", f"{lines[-1].strip()}; see {log}")
    if item.figures is not None:
        measured = json.loads(item.figures.read_text(encoding="utf-8"))
        return Outcome(item.name, "measured", in_words(measured))
    return Outcome(item.name, "passed", f"{lines[-1].strip()} ({time.monotonic() - began:.0f} s)")


def in_words(measured: Mapping[str, Any]) -> str:
    """Return the bench's figures in a line: floor, MFU, peers, waits, memory.

    MFU is the share of the rate that large square matrices' products reach on the same device.
    """
    rate, rows = measured["floor"]["matrix_rate"], measured["floor"]["rows"]
    said = [
        f"{row['method']} {row['ratio']['median']:.2f} x its floor, MFU "
        f"{row['flops'] / row['seconds'] / rate:.0%} of {rate / 1e12:.0f} TFLOP/s, "
        f"{row['tokens'] / row['seconds']:,.0f} tokens/s, {row['padding_share']:.0%} padding"
        for row in rows
    ]
    said += [
        f"{row['peer']} ({row['case']}) {row['ratio']['median']:.2f} x ours"
        for row in measured["peers"]["rows"]
    ]
    waits = mean(len(row["places"]) for row in measured["waits"]["rows"])
    peak = max(row["peak"] for row in measured["memory"]["rows"])
    return "; ".join([*said, f"{waits:.1f} waits a step", f"{peak / 2**20:,.0f} MiB a step"])


def table_of(outcomes: Sequence[Outcome]) -> Table:
    """Return what passed, failed, was measured and was skipped, in the order of the items."""
    styles = {"passed": "green", "failed": "bold red", "measured": "cyan", "skipped": "yellow"}
    table = Table(title="on this machine's GPUs", title_justify="left", title_style="bold")
    for column in ("item", "", "how"):
        table.add_column(column, overflow="fold")
    for outcome in outcomes:
        verdict = f"[{styles[outcome.verdict]}]{outcome.verdict}[/]"
        table.add_row(outcome.name, verdict, outcome.detail)
    return table


def main() -> int:
    """Run all items and print the table; 1 if one failed, or there is no GPU."""
    if not torch.cuda.is_available():
        print("error: gpu_check needs a GPU that PyTorch can use; there is none", file=sys.stderr)
        return 1
    OUTPUT.mkdir(exist_ok=True)
    for batch, longest in SHAPES:
        write_texts(OUTPUT.resolve() / f"texts-{longest}", longest, batch)
    console, outcomes = Console(), []
    for item in items(OUTPUT.resolve()):
        console.print(f"{item.name} ...", highlight=False)
        outcomes.append(outcome_of(item, torch.cuda.device_count(), OUTPUT.resolve()))
        console.print(f"  {outcomes[-1].verdict}", highlight=False)
    console.print(table_of(outcomes))
    return int(any(outcome.verdict == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
