"""`python -m benchmarks`: measure speed and memory, print one table, write the figures as JSON."""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from hydra import initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from benchmarks.case import Case
from benchmarks.measure import Row, measure_matrix_rate, options_of, show
from benchmarks.peers import compare_with_published, compare_with_torchjd, compare_with_trainer
from benchmarks.steps import (
    ABLATIONS,
    measure_ablation,
    measure_floor,
    measure_memory,
    measure_waits,
)
from tartan.core.device import is_on_cuda
from tartan.kernels.allocator import keep_freed_memory
from tartan.methods.trainer import resolve_precision
from tartan.runs.command_line import quiet_libraries
from tartan.settings import CONF

_TYPES = {"bf16-mixed": torch.bfloat16, "64-true": torch.float64}
"""Type of matrix products by the precision; float32 in others."""


class Bench:
    """Measures the sections of the bench (`benchmarks/conf/bench.yaml`)."""

    def __init__(self, options: DictConfig, scratch: Path) -> None:
        self._options, self._scratch = options, scratch
        self._rounds = int(options.rounds or (15 if options.full else 5))
        self.device = torch.device("cuda" if is_on_cuda(options.accelerator) else "cpu")
        self.precision = resolve_precision(options.precision, options.accelerator)

    def floor(self) -> Iterator[Row]:
        """Time each method's step against its floor (see `Floor`)."""
        rate = measure_matrix_rate(self.device, _TYPES.get(self.precision, torch.float32))
        first = self._options.encoders[0]
        cases = [(first, "finetune", 0), (first, "mt_tartan", 1), (first, "meta_tartan", 1)]
        cases += [(first, "meta_tartan", 2)]
        cases += [(other, "meta_tartan", 1) for other in self._options.encoders[1:]]
        if self._options.full:
            cases += [(first, "mt_tartan", 4), (first, "meta_tartan", 4)]
        for encoder, method, tasks in cases:
            yield measure_floor(
                self._case(method, tasks, encoder), self._rounds, int(self._options.warm_up),
                self._scratch / "floor", self.device, rate,
            )  # fmt: skip

    def ablations(self) -> Iterator[Row]:
        """Time a META-TARTAN step without each optimisation."""
        for ablation in ABLATIONS:
            case = self._case("meta_tartan", 1)
            yield measure_ablation(ablation, case, self._rounds, self._scratch, self.device)

    def peers(self) -> Iterator[Row]:
        """Time other programs' steps against this one's."""
        common = self._rounds, self._scratch / "peers", self.device
        yield compare_with_published(self._case("meta_tartan", 1), *common)
        yield compare_with_trainer(self._case("finetune", 0), *common)
        yield compare_with_trainer(self._case("tapt", 0), *common)
        yield compare_with_torchjd(self._case("mt_tartan", 2), *common)

    def memory(self) -> Iterator[Row]:
        """Measure the peak memory of a step."""
        numbers = (1, 2, 4, 8, 16) if self._options.full else (1, 2, 4)
        cases = [("finetune", 0), ("mt_tartan", 1), *(("meta_tartan", n) for n in numbers)]
        for method, tasks in cases:
            yield measure_memory(self._case(method, tasks), self._scratch / "memory", self.device)

    def waits(self) -> Iterator[Row]:
        """List where the host waits for the GPU in a step; nothing without one."""
        cases = (("finetune", 0), ("mt_tartan", 1), ("meta_tartan", 1))
        for method, tasks in cases if self.device.type == "cuda" else ():
            yield measure_waits(self._case(method, tasks), self._scratch / "waits", self.device)

    def _case(self, method: str, tasks: int, encoder: str | None = None) -> Case:
        options, data = self._options, self._options.data
        overrides = [
            f"encoder={encoder or options.encoders[0]}",
            f"task={data.task}",
            f"task.max_length={data.max_length}",
            f"data_dir={data.dir or 'null'}",
            f"trainer.precision={options.precision}",
            f"trainer.accelerator={options.accelerator}",
            f"cache_dir={self._scratch / 'cache'}",
            *options.options,
        ]
        return Case(method, tasks, int(options.batch_size), overrides, data.corpus)


def main(arguments: list[str]) -> None:
    """Measure the sections of the options, in order."""
    options = options_of("bench", arguments)
    quiet_libraries()
    keep_freed_memory()  # as a run does
    logging.getLogger("tartan").setLevel(logging.ERROR)  # without the remarks of a run on its data
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch, initialize_config_dir(CONF, version_base="1.3"):
        bench = Bench(options, Path(scratch))
        about = machine() | {"precision": bench.precision}
        for name in options.sections:
            for row in getattr(bench, name)():
                rows.append(row)
                print(f"{row.what}: {row.case}: {row.ratio or row.peak_mib or row.waits}")
                # after each row, so that an interruption loses no figures
                figures = {"machine": about, "options": OmegaConf.to_container(options)}
                figures |= {"rows": [asdict(row) for row in rows]}
                Path(options.output).write_text(json.dumps(figures, indent=1) + "\n")
    if rows:
        shown = [vars(row) | {"ratio": str(row.ratio or "")} for row in rows]
        show(shown, f"ratios of times: median (quartiles); {about['gpu'] or about['processor']}")
    print(f"figures in {options.output}")


def machine() -> dict[str, Any]:
    """Describe the machine on which the figures depend."""
    return {
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
