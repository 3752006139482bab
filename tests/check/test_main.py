"""`python -m src.check` as a user calls it."""

from __future__ import annotations

import json

import pytest

from tests.check import made_up
from tests.programs import called_for_text

pytestmark = pytest.mark.slow


@pytest.fixture
def check(tmp_path):
    """Call the program in an empty folder; what it finds there afterwards is its own."""

    def call(*options):
        folder = tmp_path / "cwd"
        folder.mkdir(exist_ok=True)
        done = called_for_text("src.check", *options, cwd=folder, environment={"COLUMNS": "80"})
        return done, " ".join(done.stdout.split())

    return call


def numbers(tmp_path):
    return json.loads((tmp_path / "cwd" / "check.json").read_text(encoding="utf-8"))


def test_it_says_what_is_known_of_a_made_up_task_and_leaves_nothing_but_its_numbers(
    check, tmp_path
):
    done, text = check(*made_up.written(tmp_path), "output=check.json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for part in (
        "meta_tartan on own, tiny",
        "texts that repeat or are blank (3 of 4)",
        "one red apple",
        "Begin with method=dapt_tapt",
        "dev has 3 examples",
        "label 'B' has 2 training examples",
        "2 test texts are in dev too",
        "numbers in check.json",
    ):
        assert part in text, done.stdout
    assert [path.name for path in (tmp_path / "cwd").iterdir()] == ["check.json"]
    found = numbers(tmp_path)
    assert found["labels"] == [
        {"name": "A", "train": 6, "dev": 1, "test": 2},
        {"name": "B", "train": 2, "dev": 2, "test": 2},
    ]
    assert [row["in_train"] for row in found["repeats"]] == [None, 1, 1]
    assert found["same"][0]["places"].startswith("train line 1 (A), train line 2 (A), train line 3")
    assert [row["name"] for row in found["lengths"]] == ["train", "dev", "test", "dapt"]
    (stage,) = found["stages"]
    assert (stage["name"], stage["batch"]) == ("joint", 4)
    assert stage["seconds"] == stage["steps"] * stage["step_time"] > 0
    assert 0.1 < stage["GiB"] < found["memory_gib"]
    assert found["advice"]["method"] == "dapt_tapt"


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("auxiliary.dapt.path=/nowhere/corpus.txt", "/nowhere/corpus.txt"),
        ("micro_batch_size=0", "micro_batch_size"),
        ("output=/nowhere/check.json", "/nowhere/check.json"),
        ("-m", "leave out -m"),
    ],
)
def test_what_would_end_the_run_is_one_line(check, tmp_path, option, named):
    done, _ = check(*made_up.written(tmp_path), option)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert named in line
    assert list((tmp_path / "cwd").iterdir()) == []


def test_images_have_no_lengths_and_no_words(check):
    done, text = check("+experiment=digits_meta", "encoder.depth=10", "encoder.width=1")
    assert done.returncode == 0, done.stderr
    assert "in tokens" not in text
    assert "examples of each label" in text
    assert "Begin with method=meta_tartan" in text


def test_the_leaks_of_a_published_task_are_found(check, tmp_path, real_data):
    corpus = real_data / "corpora" / "cs_acl_papers.txt.gz"
    done, _ = check(
        "task=acl_arc", f"data_dir={real_data}", "encoder=tiny", "auxiliary=dapt_tapt",
        f"auxiliary.dapt.path={corpus}", f"cache_dir={tmp_path}/cache", "output=check.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    train, dev, test = numbers(tmp_path)["repeats"]
    assert train["texts"] == 1688
    assert train["repeats"] >= 418
    assert (dev["in_train"], test["in_train"]) >= (43, 52)
