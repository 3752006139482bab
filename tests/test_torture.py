"""Programs that are killed at random moments, their files damaged between two starts.

The short versions are part of the suite; `make torture` kills three kinds of runs 100 times, and
`src.predict` and `src.build_corpus` too. See `tests.torture` for what is held.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import random
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.torch import load_file

from tests.corpus.made_up import contents, write_articles
from tests.predict.conftest import TEXTS, classifier  # noqa: F401
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
        options = [*self.run_options, f"hydra.run.dir={self.folder}", *self.options]
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
        # what starts over does so beside it
        again = self.folder.with_name(f"{self.folder.name}-2")
        folder = again if self.options and again.exists() else self.folder
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
        if self.options or next(self._starts) % 6 == 0:
            return [self._process({})]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {
            "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "torture",
        }  # fmt: skip
        return [self._process(common | {"RANK": rank, "LOCAL_RANK": rank}) for rank in "01"]


class TorturedPrediction(Tortured):
    """A call of `src.predict`."""

    def __init__(self, model: Path, source: Path, folder: Path) -> None:
        super().__init__(folder)
        self.model, self.source = model, source
        folder.mkdir()
        self.target = folder / f"out{source.suffix}"

    def start(self) -> Sequence[Started]:
        options = [f"model={self.model}", f"input={self.source}", f"output={self.target}"]
        return [started("src.predict", *options, *self.options, cwd=self.folder)]

    def being_written(self):
        sizes = [(path, path.stat().st_size) for path in self.files() if path.exists()]
        return frozenset(sizes)

    def files(self) -> list[Path]:
        return [p for p in self.folder.iterdir() if p.name.endswith((".part", ".unfinished"))]

    def left(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.glob("out*")}

    def is_done(self, error: str) -> bool:
        # it was killed when all was done
        return "exists already" in error and not self.files()

    def follow(self, advice: str) -> None:
        assert "resume=false" in advice, advice
        self.options = ["resume=false"]


class TorturedBuild(Tortured):
    """A call of `src.build_corpus`, in one process or two by turns."""

    def __init__(self, sources: Path, folder: Path, *options: str) -> None:
        super().__init__(folder)
        self.build_options = [f"sources={sources}", f"output={folder}", *options]
        self.starts = itertools.count()

    def start(self) -> Sequence[Started]:
        workers = f"executor.workers={next(self.starts) % 2 + 1}"
        options = [*self.build_options, workers]
        # joblib's processes leave at once only where an interpreter of its own ends
        return [started("src.build_corpus", *options, cwd=self.folder.parent, fresh=True)]

    def being_written(self):
        return half_written(self.folder)

    def files(self) -> list[Path]:
        return []  # a build is promised to survive kills, and no damage of what is unfinished

    def left(self) -> dict[str, bytes]:
        return contents(self.folder)


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


def predictions(tmp_path: Path, model: Path, kind: str, rows: int):
    """What calls of `src.predict` on made-up rows are made by."""
    source = tmp_path / f"in.{kind}"
    texts = [f"{TEXTS[i % len(TEXTS)]} {'word ' * (i % 7)}{i}" for i in range(rows)]
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts}), source, row_group_size=3000)
    else:
        with source.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["text"], *([text] for text in texts)])
    return lambda name: TorturedPrediction(model, source, tmp_path / name)


def builds(tmp_path: Path, articles: int, *options: str):
    """What calls of `src.build_corpus` on made-up articles are made by."""
    write_articles(tmp_path / "articles", shards=4, articles=articles)
    common = ("decontaminate=null", "examples.min_words=1", *options)
    return lambda name: TorturedBuild(tmp_path / "articles", tmp_path / name, *common)


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


@pytest.mark.manual
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_fifteen_kills_of_a_prediction_change_nothing(kind, classifier, tmp_path):  # noqa: F811
    new = predictions(tmp_path, classifier, kind, rows=20_000)
    torture(new, kills=int(KILLS or 15), seed=2, damages=0.4)


@pytest.mark.manual
def test_thirty_kills_of_a_build_change_nothing(tmp_path):
    new = builds(tmp_path, 3000, "near_duplicates=true", "field_of_study=[Computer Science]")
    torture(new, kills=int(KILLS or 30), seed=3, damages=0)
