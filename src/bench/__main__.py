"""`python -m src.bench`: measure speed and memory, print tables, write the figures as JSON."""

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
from typing import Any

import hydra
import torch
from hydra import compose
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from src.bench.ablations import measure_ablations
from src.bench.case import Case
from src.bench.evaluation import measure_evaluation
from src.bench.floor import measure_floor
from src.bench.growth import draw_growth, measure_growth
from src.bench.measure import measure_matrix_rate
from src.bench.memory import measure_memory
from src.bench.peers import compare_with_published, compare_with_torchjd, compare_with_trainer
from src.bench.start_up import measure_start
from src.bench.tables import (
    ablation_table,
    evaluation_table,
    floor_table,
    growth_table,
    memory_table,
    peer_table,
    start_table,
    waits_table,
)
from src.bench.waits import measure_waits
from src.command_line.hydra_errors import run_command_line
from src.command_line.output_file import output_file
from src.command_line.quiet import quiet_libraries
from src.configuration.options import Count, Natural, Text
from src.configuration.values import check
from src.core.device import is_on_cuda
from src.cpu.allocator import keep_freed_memory
from src.errors import UserError
from src.methods.precision import resolve_precision
from src.run_folder.stop import stop

MINILM, ROBERTA = "minilm", "roberta_base_random"
SECTIONS = ("floor", "ablations", "peers", "waits", "memory", "growth", "evaluation", "start_up")
"""Methods of `Sections`."""
_TYPES = {"bf16-mixed": torch.bfloat16, "64-true": torch.float64}
"""Type of matrix products by the precision; float32 in others."""


class Sections:
    """Measures and prints the sections of the bench.

    Args:
        config: the config (`conf/bench.yaml`).
        scratch: a folder for the cases' runs.
        console: the console for the tables.
    """

    def __init__(self, config: DictConfig, scratch: Path, console: Console) -> None:
        self._config, self._scratch, self._console = config, scratch, console
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

    def floor(self) -> dict[str, Any]:
        """Time each method's step against its floor (see `src.bench.floor`)."""
        rate = measure_matrix_rate(self._device, self._dtype)
        cases = [(MINILM, "finetune", 0), (MINILM, "mt_tartan", 1), (MINILM, "meta_tartan", 1)]
        cases += [(MINILM, "meta_tartan", 2)]
        cases += [(ROBERTA, "meta_tartan", 1)]
        if self._full:
            cases += [(MINILM, "mt_tartan", 4), (MINILM, "meta_tartan", 4)]
            cases += [(ROBERTA, "finetune", 0), (ROBERTA, "mt_tartan", 1)]
            cases += [(ROBERTA, "meta_tartan", 2), (ROBERTA, "meta_tartan", 4)]
        rows = [
            measure_floor(
                self._case(method, tasks, encoder),
                encoder,
                self._rounds,
                self._scratch / "floor",
                warm_up=int(self._config.warm_up),
                dtype=self._dtype,
            )
            for encoder, method, tasks in cases
            if encoder in self._config.encoders
        ]
        self._console.print(floor_table(rows, rate))
        return {"matrix_rate": rate, "rows": [asdict(row) for row in rows]}

    def ablations(self) -> dict[str, Any]:
        """Time a step without each optimisation."""
        rows = measure_ablations(
            self._case("meta_tartan", 1), self._rounds, self._scratch / "ablations", self._device
        )
        self._console.print(ablation_table(rows))
        return {"rows": [asdict(row) for row in rows]}

    def peers(self) -> dict[str, Any]:
        """Time other programs' steps against this one's."""
        folder, rounds, device = self._scratch / "peers", self._rounds, self._device
        rows = [
            compare_with_published(self._case("meta_tartan", 1), rounds, folder, device),
            compare_with_trainer(self._case("finetune", 0), rounds, folder, device),
            compare_with_trainer(self._case("tapt", 0), rounds, folder, device),
            compare_with_torchjd(self._case("mt_tartan", 2), rounds, folder, device),
        ]
        self._console.print(peer_table(rows))
        return {"rows": [asdict(row) for row in rows]}

    def waits(self) -> dict[str, Any]:
        """Count how often the host waits for the GPU in a step."""
        if self._device.type != "cuda":
            self._console.print("waits for the GPU: not measured, because there is no GPU")
            return {"rows": []}
        rows = [
            measure_waits(self._case(method, tasks), self._scratch / "waits", self._device)
            for method, tasks in (("finetune", 0), ("mt_tartan", 1), ("meta_tartan", 1))
        ]
        self._console.print(waits_table(rows))
        return {"rows": [asdict(row) for row in rows]}

    def memory(self) -> dict[str, Any]:
        """Measure the peak memory of a step."""
        numbers = (1, 2, 4, 8, 16) if self._full else (1, 2, 4)
        cases = [self._case("finetune", 0), self._case("mt_tartan", 1)]
        cases += [self._case("meta_tartan", number) for number in numbers]
        composed = [self._case("aang", number) for number in (1, 24, 40)]
        folder = self._scratch / "memory"
        rows = [row for case in cases for row in measure_memory([case], folder, self._device)]
        rows += measure_memory(composed, folder, self._device)
        self._console.print(memory_table(rows))
        return {"rows": [asdict(row) for row in rows]}

    def growth(self) -> dict[str, Any]:
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
        growths = [
            measure_growth(along, by_size, self._rounds, self._scratch / "growth", self._device)
            for along, by_size in cases.items()
        ]
        self._console.print(growth_table(growths))
        picture = Path(str(self._config.output)).with_suffix(".png")
        draw_growth(growths, picture)
        return {"rows": [asdict(growth) for growth in growths], "picture": str(picture)}

    def evaluation(self) -> dict[str, Any]:
        """Measure the throughput of evaluations on dev."""
        rows = [
            measure_evaluation(
                self._case("finetune", 0, encoder), encoder, self._rounds,
                self._scratch / "evaluation", self._device,
            )
            for encoder in self._config.encoders
        ]  # fmt: skip
        self._console.print(evaluation_table(rows))
        return {"rows": [asdict(row) for row in rows]}

    def start_up(self) -> dict[str, Any]:
        """Time a run from the command to its first step, with an empty and a filled cache."""
        method = ["method=meta_tartan", "auxiliary.size=all", "trainer.enable_progress_bar=false"]
        if self._corpus is not None:
            method.append(f"auxiliary.dapt.path={self._corpus}")
        rows = [
            measure_start(what, [*self._options, *method], self._scratch / "start" / str(number))
            for number, what in enumerate(("whole corpus, first start", "whole corpus, from cache"))
        ]
        self._console.print(start_table(rows))
        return {"rows": [asdict(row) for row in rows]}

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
            heads = width // 64
            sizes = {"hidden_size": width, "intermediate_size": 4 * width}
            sizes |= {"num_attention_heads": heads}
            options += [f"+encoder.sizes.{name}={value}" for name, value in sizes.items()]
        size = batch_size or int(self._config.batch_size)
        return Case(method, tasks, size, options, self._corpus)


@hydra.main(version_base="1.3", config_path="../../conf", config_name="bench")
def main(config: DictConfig) -> None:
    """Measure the sections of the config, in order."""
    quiet_libraries()
    keep_freed_memory()  # as a run does
    logging.getLogger("src").setLevel(logging.ERROR)  # without the remarks of a run on its data
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        output = _checked(config)
    except UserError as error:
        stop(error)
    measured: dict[str, Any] = {
        "machine": machine(config),
        "config": OmegaConf.to_container(config),
    }
    with tempfile.TemporaryDirectory() as scratch:
        bench = Sections(config, Path(scratch), console)
        for name in config.sections:
            try:
                measured[name] = getattr(bench, name)()
            except UserError as error:
                stop(f"{name}: {error}")
            # after each section, so that an interruption loses no figures
            output.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    console.print(f"figures in {output}", highlight=False)


def _checked(config: DictConfig) -> Path:
    """Return the file for the figures, after checking the options of the bench.

    Raises:
        UserError: an option has an invalid value.
    """
    values = OmegaConf.to_container(config)
    assert isinstance(values, dict)
    for name in ("sections", "encoders"):
        check(values[name], Sequence[Text], name)
    check(values["rounds"], Count | None, "rounds")
    check(values["batch_size"], Count, "batch_size")
    check(values["warm_up"], Natural, "warm_up")
    unknown = [name for name in values["sections"] if name not in SECTIONS]
    if unknown:
        raise UserError(f"sections: {unknown[0]} is not one of {', '.join(SECTIONS)}")
    return output_file(values["output"])


def machine(config: DictConfig) -> dict[str, Any]:
    """Describe the machine and the settings on which the figures depend."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "gpu": gpu,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "precision": resolve_precision(config.precision, "auto"),
        "torch": str(torch.__version__),
    }


if __name__ == "__main__":
    run_command_line(main)
