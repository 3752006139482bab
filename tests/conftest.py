"""Fixtures that several folders of tests share."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.programs import ROOT, called_for_text

# Tiny models: more threads only wait for each other, most of all beside other processes.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)

# No test asserts a time: beside other work any example can be slow.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

DEVICE = torch.device(os.environ.get("TARTAN_TEST_DEVICE", "cpu"))
"""Where tests compute that can do so anywhere; `make gpu-check` has them do it on a GPU."""

REAL_DATA = ROOT.parent / "shared" / "data"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.hookimpl(trylast=True)  # when the tests that are not run have been removed
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin each worker's share with some of the longest tests, so that none runs last, alone.

    Work stealing gives each worker an equal part of the tests, in their order.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    longest = [item for item in items if item.get_closest_marker("longest")]
    others = iter([item for item in items if not item.get_closest_marker("longest")])
    shares = [longest[worker::workers] for worker in range(workers)]
    for worker, share in enumerate(shares):
        placed = sum(map(len, shares[:worker]))
        size = (len(items) - placed) // (workers - worker)
        share.extend(islice(others, max(0, size - len(share))))
    items[:] = [item for share in shares for item in share]


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the whole test session: nothing is found there that a test did not put there.

    All workers share the texts of the docstrings task, which take half a minute to gather.
    """
    cache, base = tmp_path_factory.mktemp("cache"), tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "docstrings"
    shared.mkdir(exist_ok=True)
    (cache / "docstrings").symlink_to(shared)
    return cache


WORDS = ["apple", "river", "stone"]
FILLERS = ["red", "old", "cold", "near", "far", "big", "odd", "wet"]


def toy_rows() -> dict[str, list[dict[str, str]]]:
    """The splits of a small labelled task: which of three words is in a text."""

    def example(index: int) -> dict[str, str]:
        word = WORDS[index % 3]
        text = f"{FILLERS[index % 8]} {word} {FILLERS[(index // 8) % 8]} {index}"
        return {"text": text, "label": word[0].upper()}

    numbers = {"train": range(48), "dev": range(60, 81), "test": range(90, 120)}
    rows = {split: [example(number) for number in some] for split, some in numbers.items()}
    for split in ("dev", "test"):
        rows[split].append(example(0))  # a text that train has too
    return rows


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small labelled task, `toy`, and corpora beside it: which of three words is in a text."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "toy").mkdir()
    for split, rows in toy_rows().items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "toy" / f"{split}.jsonl").write_text(lines.rstrip("\n"), encoding="utf-8")
    words, fillers = WORDS, FILLERS
    corpus = [f"the {w} is {a} and {b}" for w in words for a in fillers for b in fillers]
    corpus[5] = ""
    (folder / "corpus.txt").write_text("\n".join(corpus) + "\n", encoding="utf-8")
    return folder


def toy_task(data_dir: Path, cache_dir: Path) -> list[str]:
    """Overrides that train the tiny encoder on the toy task in seconds."""
    return [
        "encoder=tiny",
        "task=files",
        *(f"task.{split}={data_dir}/toy/{split}.jsonl" for split in ("train", "dev", "test")),
        "task.name=toy",
        "task.max_length=32",
        f"cache_dir={cache_dir}",
        "max_steps=6",
        "trainer.enable_progress_bar=false",
    ]


@pytest.fixture
def toy_options(data_dir: Path, cache_dir: Path) -> list[str]:
    return toy_task(data_dir, cache_dir)


@pytest.fixture
def run_cli(tmp_path: Path) -> Run:
    """Call `python -m src.run` as a user does; runs land in `tmp_path/runs`."""

    def call(
        *options: str, timeout: float = 1200, threads: int = 1, fresh: bool = False
    ) -> subprocess.CompletedProcess[str]:
        return called_for_text(
            "src.run", *options, cwd=tmp_path, environment={"COLUMNS": "200"},
            threads=threads, timeout=timeout, fresh=fresh,
        )  # fmt: skip

    return call


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The paper's real tasks, where the folder beside the checkout holds them."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"the paper's data are not here ({REAL_DATA})")
    return REAL_DATA
