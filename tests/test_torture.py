"""Runs that are killed at random moments, their files damaged between two starts.

A short version is part of the suite; `make torture` kills three kinds of runs 100 times. See
`tests.torture` for what is held.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.programs import Started, started
from tests.torture import PATIENCE, Tortured, torture, wait

KILLS = os.environ.get("KILLS")
"""How often each is killed, where it is not to be as often as usual."""
DAMAGED = (".ckpt", ".sha256", ".csv", ".json", ".yaml")
"""Endings of a run's files that are damaged."""


def half_written(folder: Path) -> frozenset[Path]:
    """Files that are being written; unlike rglob, walk passes over what is removed meanwhile."""
    walked = os.walk(folder)
    return frozenset(Path(at, n) for at, _, names in walked for n in names if n.endswith(".part"))


class TorturedRun(Tortured):
    """A run of `src.run`."""

    def __init__(
        self, options: list[str], folder: Path, threads: int = 1, evaluate_every: int = 5
    ) -> None:
        super().__init__(folder)
        self.run_options, self.threads, self.every = options, threads, evaluate_every

    def start(self) -> Sequence[Started]:
        return [self._process({})]

    def _process(self, environment: dict[str, str]) -> Started:
        options = [*self.run_options, f"hydra.run.dir={self.folder}"]
        return started(
            "src.run", *options, cwd=self.folder.parent, environment=environment,
            threads=self.threads,
        )  # fmt: skip

    def moments(self):
        return {"around an evaluation": self._around_an_evaluation}

    def _around_an_evaluation(self, rng: random.Random, is_over: Callable[[], bool]) -> None:
        begun = self._steps()
        wait(is_over, lambda: self._steps() > begun and self._steps() % self.every == 0, PATIENCE)
        wait(is_over, lambda: False, rng.uniform(0, 0.5))

    def _steps(self) -> int:
        log = self.folder / "steps.csv"
        lines = log.read_bytes().splitlines() if log.exists() else []
        cells = lines[-1].split(b",") if lines else []
        return int(cells[1]) if len(cells) > 2 and cells[1].isdigit() else 0

    def being_written(self):
        return half_written(self.folder)

    def files(self) -> list[Path]:
        return [
            path
            for path in self.folder.rglob("*")
            if path.suffix in DAMAGED
            and path.is_file()
            # what loggers and Hydra wrote is read by nobody
            and not {"logs", ".hydra"} & set(path.relative_to(self.folder).parts)
        ]

    def left(self) -> dict[str, str]:
        """Parameters, the result without its timings, the step log."""
        folder = self.folder
        parameters = hashlib.sha256()
        for name, value in sorted(load_file(folder / "classifier/model.safetensors").items()):
            parameters.update(name.encode() + value.numpy().tobytes())
        result = json.loads((folder / "result.json").read_text())
        for part in (result, *result["stages"]):
            del part["measured"]
        for baseline in result["baselines"]:
            baseline.pop("seconds", None)
        return {
            "parameters": parameters.hexdigest(),
            "result": json.dumps(result, sort_keys=True),
            "steps": hashlib.sha256((folder / "steps.csv").read_bytes()).hexdigest(),
        }


class TorturedRunOfTwo(TorturedRun):
    """The same in two processes: as torchrun starts them, or, now and then, as Lightning does."""

    _starts = itertools.count()

    def start(self) -> Sequence[Started]:
        # Lightning's second process is an interpreter that imports everything
        if next(self._starts) % 6 == 0:
            return [self._process({})]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {
            "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "torture",
        }  # fmt: skip
        return [self._process(common | {"RANK": rank, "LOCAL_RANK": rank}) for rank in "01"]


def toy_run(toy_options, data_dir, *options: str) -> list[str]:
    corpus = f"auxiliary.dapt.path={data_dir}/corpus.txt"
    return [*toy_options, *options, corpus, "checkpoint_minutes=0"]


@pytest.mark.longest
def test_three_kills_change_nothing(toy_options, data_dir, tmp_path):
    options = toy_run(
        toy_options, data_dir, "method=meta_tartan", "auxiliary=dapt_tapt", "max_steps=40",
        "method.stages.joint.batch_size=8", "method.stages.joint.evaluate_every=5",
    )  # fmt: skip
    torture(lambda name: TorturedRun(options, tmp_path / name), kills=3, seed=0, damages=0)


@pytest.mark.manual
def test_forty_kills_of_a_real_encoder_change_nothing(tmp_path):
    options = [
        "+experiment=quickstart",
        # short texts in small batches: what is tried is how files of a real encoder are written
        "method.stages.joint.batch_size=8",
        "method.stages.last_finetune.batch_size=8",
        "task.max_length=24",
        "task.dev_per_class=10",
        "task.test_per_class=10",
        "max_steps=18",
        "method.stages.joint.evaluate_every=6",
        "method.stages.joint.meta_head.fresh=false",
        "method.stages.last_finetune.enabled=true",
        "method.stages.last_finetune.max_steps=6",
        "method.stages.last_finetune.evaluate_every=3",
        "checkpoint_minutes=0",
        f"cache_dir={tmp_path}/cache",
        "trainer.enable_progress_bar=false",
    ]
    torture(
        lambda name: TorturedRun(options, tmp_path / name, threads=2, evaluate_every=6),
        kills=int(KILLS or 40), seed=0, damages=0.3,
    )  # fmt: skip


@pytest.mark.manual
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (TorturedRun, ["method=dapt_tapt", "auxiliary=dapt_tapt"]),
        (
            TorturedRunOfTwo,
            ["method=meta_tartan", "auxiliary=dapt_tapt", "trainer=ddp", "trainer.devices=2"],
        ),
    ],
    ids=["three stages", "two processes"],
)
def test_thirty_kills_of_other_runs_change_nothing(kind, options, toy_options, data_dir, tmp_path):
    options = toy_run(toy_options, data_dir, *options, "max_steps=30")
    torture(
        lambda name: kind(options, tmp_path / name), kills=int(KILLS or 30), seed=1, damages=0.3
    )
