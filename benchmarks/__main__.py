"""`python -m benchmarks`: measure speed and memory, print tables, write the figures as JSON."""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import hydra
import torch
from hydra import compose
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from benchmarks.ablations import measure_ablations
from benchmarks.case import Case
from benchmarks.evaluation import measure_evaluation
from benchmarks.floor import measure_floor
from benchmarks.growth import measure_growth
from benchmarks.measure import measure_matrix_rate
from benchmarks.memory import measure_memory, with_growth
from benchmarks.peers import compare_with_published, compare_with_torchjd, compare_with_trainer
from benchmarks.row import Row, table_of
from benchmarks.start_up import measure_starts
from benchmarks.waits import measure_waits
from tartan.command_line.hydra_errors import run_command_line
from tartan.command_line.output_file import output_file
from tartan.command_line.quiet import quiet_libraries
from tartan.core.device import is_on_cuda
from tartan.errors import UserError
from tartan.kernels.allocator import keep_freed_memory
from tartan.methods.precision import resolve_precision
from tartan.run_folder.stop import stop
from tartan.settings import CONF, Count, Natural, Text, check

MINILM, ROBERTA = "minilm", "roberta_base_random"
Section = Literal[
    "floor", "ablations", "peers", "waits", "memory", "growth", "evaluation", "start_up"
]
"""Methods of `Sections`."""
_OPTIONS = {
    "sections": Sequence[Section],
    "encoders": Sequence[Text],
    "rounds": Count | None,
    "batch_size": Count,
    "warm_up": Natural,
}
"""Types of the bench's own options."""
_TYPES = {"bf16-mixed": torch.bfloat16, "64-true": torch.float64}
"""Type of matrix products by the precision; float32 in others."""


class Sections:
    """Measures the sections of the bench.

    Args:
        config: the config (`conf/bench.yaml`).
        scratch: a folder for the cases' runs.
    """

    def __init__(self, config: DictConfig, scratch: Path) -> None:
        self._config, self._scratch = config, scratch
        self._options = [
            f"task={config.data.task}",
            f"task.max_length={config.data.max_length}",
            f"data_dir={'null' if config.data.dir is None else config.data.dir}",
            f"trainer.precision={config.precision}",
            f"cache_dir={scratch / 'cache'}",
            *config.options,
        ]
        self._encoder = str(config.encoders[0])
        self._corpus = None if config.data.corpus is None else str(config.data.corpus)
        self._full = bool(config.full)
        self._rounds = int(config.rounds or (15 if self._full else 5))
        run = compose("config", overrides=self._options)
        accelerator = str(run.trainer.accelerator)
        self._device = torch.device("cuda" if is_on_cuda(accelerator) else "cpu")
        precision = resolve_precision(run.trainer.precision, accelerator)
        self._dtype = _TYPES.get(precision, torch.float32)

    def floor(self) -> Sequence[Row]:
        """Time each method's step against its floor (see `benchmarks.floor`)."""
        rate = measure_matrix_rate(self._device, self._dtype)
        cases = [(MINILM, "finetune", 0), (MINILM, "mt_tartan", 1), (MINILM, "meta_tartan", 1)]
        cases += [(MINILM, "meta_tartan", 2), (ROBERTA, "meta_tartan", 1)]
        if self._full:
            cases += [(MINILM, "mt_tartan", 4), (MINILM, "meta_tartan", 4)]
            cases += [(ROBERTA, "finetune", 0), (ROBERTA, "mt_tartan", 1)]
            cases += [(ROBERTA, "meta_tartan", 2), (ROBERTA, "meta_tartan", 4)]
        return [
            measure_floor(
                self._case(method, tasks, encoder), encoder, self._rounds, self._scratch / "floor",
                warm_up=int(self._config.warm_up), matrix_rate=rate,
            )
            for encoder, method, tasks in cases
            if encoder in self._config.encoders
        ]  # fmt: skip

    def ablations(self) -> Sequence[Row]:
        """Time a step without each optimisation."""
        case = self._case("meta_tartan", 1)
        return measure_ablations(case, self._rounds, self._scratch / "ablations", self._device)

    def peers(self) -> Sequence[Row]:
        """Time other programs' steps against this one's."""
        folder, rounds, device = self._scratch / "peers", self._rounds, self._device
        return [
            compare_with_published(self._case("meta_tartan", 1), rounds, folder, device),
            compare_with_trainer(self._case("finetune", 0), rounds, folder, device),
            compare_with_trainer(self._case("tapt", 0), rounds, folder, device),
            compare_with_torchjd(self._case("mt_tartan", 2), rounds, folder, device),
        ]

    def waits(self) -> Sequence[Row]:
        """Count how often the host waits for the GPU in a step."""
        if self._device.type != "cuda":
            print("waits for the GPU: not measured, because there is no GPU")
            return []
        return [
            measure_waits(self._case(method, tasks), self._scratch / "waits", self._device)
            for method, tasks in (("finetune", 0), ("mt_tartan", 1), ("meta_tartan", 1))
        ]

    def memory(self) -> Sequence[Row]:
        """Measure the peak memory of a step."""
        numbers = (1, 2, 4, 8, 16) if self._full else (1, 2, 4)
        cases = [self._case("finetune", 0), self._case("mt_tartan", 1)]
        cases += [self._case("meta_tartan", number) for number in numbers]
        composed = [self._case("aang", number) for number in (1, 24, 40)]
        folder = self._scratch / "memory"
        rows = [row for case in cases for row in measure_memory([case], folder, self._device)]
        return with_growth([*rows, *measure_memory(composed, folder, self._device)])

    def growth(self) -> Sequence[Row]:
        """Time a step for several numbers of tasks, batch sizes and body sizes."""
        size = int(self._config.batch_size)
        numbers = (1, 2, 4, 8) if self._full else (1, 2, 4)
        widths = (192, 384, 768) if self._full else (192, 384)
        cases: dict[str, dict[float, Case]] = {
            "auxiliary tasks": {n: self._case("meta_tartan", n) for n in numbers},
            "tokens a batch": {
                part: self._case("meta_tartan", 1, batch_size=max(1, size // part))
                for part in (4, 2, 1)
            },
            "parameters of the body": {
                width: self._case("meta_tartan", 1, ROBERTA, width=width) for width in widths
            },
        }
        return [
            measure_growth(along, by_size, self._rounds, self._scratch / "growth", self._device)
            for along, by_size in cases.items()
        ]

    def evaluation(self) -> Sequence[Row]:
        """Measure the throughput of evaluations on dev."""
        return [
            measure_evaluation(
                self._case("finetune", 0, encoder), encoder, self._rounds,
                self._scratch / "evaluation", self._device,
            )
            for encoder in self._config.encoders
        ]  # fmt: skip

    def start_up(self) -> Sequence[Row]:
        """Time a run from the command to its first step, with an empty and a filled cache."""
        options = ["method=meta_tartan", "auxiliary.size=all", "trainer.enable_progress_bar=false"]
        if self._corpus is not None:
            options.append(f"auxiliary.dapt.path={self._corpus}")
        return measure_starts([*self._options, *options], self._scratch / "start")

    def _case(
        self,
        method: str,
        tasks: int,
        encoder: str | None = None,
        batch_size: int | None = None,
        width: int | None = None,
    ) -> Case:
        options = [f"encoder={encoder or self._encoder}", *self._options]
        if width is not None:
            sizes = {"hidden_size": width, "intermediate_size": 4 * width}
            sizes |= {"num_attention_heads": width // 64}
            options += [f"+encoder.sizes.{name}={value}" for name, value in sizes.items()]
        size = batch_size or int(self._config.batch_size)
        return Case(method, tasks, size, options, self._corpus)


@hydra.main(version_base="1.3", config_path=CONF, config_name="bench")
def main(config: DictConfig) -> None:
    """Measure the sections of the config, in order."""
    quiet_libraries()
    keep_freed_memory()  # as a run does
    logging.getLogger("tartan").setLevel(logging.ERROR)  # without the remarks of a run on its data
    console = Console(width=None if sys.stdout.isatty() else 120)
    values: Any = OmegaConf.to_container(config)
    try:
        for name, kind in _OPTIONS.items():
            check(values[name], kind, name)
        output = output_file(values["output"])
    except UserError as error:
        stop(error)
    measured: dict[str, Any] = {"machine": machine(config), "config": values}
    with tempfile.TemporaryDirectory() as scratch:
        bench = Sections(config, Path(scratch))
        for name in values["sections"]:
            try:
                rows: Sequence[Row] = getattr(bench, name)()
            except UserError as error:
                stop(f"{name}: {error}")
            if rows:
                console.print(table_of(rows))
            measured[name] = {"rows": [asdict(row) for row in rows]}
            # after each section, so that an interruption loses no figures
            output.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    console.print(f"figures in {output}", highlight=False)


def machine(config: DictConfig) -> dict[str, Any]:
    """Describe the machine and the settings on which the figures depend."""
    return {
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "precision": resolve_precision(config.precision, "auto"),
        "torch": str(torch.__version__),
    }


if __name__ == "__main__":
    run_command_line(main)
