"""`python -m src.check` as a user calls it."""

from __future__ import annotations

import json
import sys

import pytest

from tests.check import made_up
from tests.programs import called_for_text

pytestmark = pytest.mark.slow


@pytest.fixture
def check(tmp_path):
    """Call the program in an empty folder; what it finds there afterwards is its own."""

    def call(*options, columns=80):
        folder = tmp_path / "cwd"
        folder.mkdir(exist_ok=True)
        environment = {"COLUMNS": str(columns)}
        return called_for_text("src.check", *options, cwd=folder, environment=environment)

    return call


def test_it_says_what_is_known_of_a_made_up_task_and_leaves_nothing_but_its_numbers(
    check, tmp_path
):
    (tmp_path / "cwd" / ".venv").mkdir(parents=True)  # as in a checkout: it leads elsewhere
    (tmp_path / "cwd" / ".venv" / "python").symlink_to(sys.executable)
    done = check(*made_up.written(tmp_path), "output=check.json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    for part in (
        "meta_tartan on own, tiny",
        "train: 'A' has 3.0 times as many examples as 'B'",
        "Begin with method=dapt_tapt\n- estimated time on this machine: ",
        "; fine-tuning: ",
        "dev has 3 examples",
        "2 dev and test texts are in the domain corpus",
        "labels 'B', 'A' have fewer than 10 training examples",
        "2 test texts are in dev too",
        "4 texts repeat or are blank, 2 with different labels (output=FILE has all):",
        "  line 1 (train, A), line 2 (train, A), line 3 (train, B): one red apple",
        "numbers in check.json",
    ):
        assert part in done.stdout, done.stdout
    assert done.stdout.count("dev and test texts are in") == 1, done.stdout
    assert sorted(path.name for path in (tmp_path / "cwd").iterdir()) == [".venv", "check.json"]
    found = json.loads((tmp_path / "cwd" / "check.json").read_text(encoding="utf-8"))
    assert found["counts"]["splits"] == {"train": [6, 2], "dev": [1, 2], "test": [2, 2]}
    assert found["repeated"][0] == {
        "split": "train", "examples": 8, "exact": 1, "folded": 2,
        "contradictory": 1, "contradicted": 3,
    }  # fmt: skip
    assert [(p["split"], p["other"], p["exact"], p["folded"]) for p in found["shared"]] == [
        ("dev", "train", 1, 1),
        ("test", "train", 0, 1),
        ("test", "dev", 1, 2),
    ]
    assert [place["number"] for place in found["same"][0]["places"]] == [1, 2, 3]
    assert found["corpora"][0]["exact"] == {"dev": 0, "test": 2}
    assert found["auxiliaries"] == {"dapt": 4, "tapt": 8}
    names = [method["name"] for method in found["estimates"]]
    assert names == ["finetune", "tapt", "dapt", "dapt_tapt", "mt_tartan", "meta_tartan"]
    assert all(method["seconds"] > 0 and method["bytes"] > 0 for method in found["estimates"])
    seconds = {method["name"]: method["stages"][-1] for method in found["estimates"]}
    assert seconds["meta_tartan"]["step_seconds"] > seconds["mt_tartan"]["step_seconds"]
    assert [text["source"] for text in found["lengths"]] == ["train", "dev", "test", "dapt"]
    assert found["remarks"] == []


def test_the_runs_own_warnings_are_told(check, tmp_path):
    done = check(*made_up.written(tmp_path), "method.stages.joint.batch_size=64")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "batch_size=64 is more than there are examples" in " ".join(done.stdout.split())


def test_a_task_without_a_test_split_has_none_in_the_tables(check, tmp_path):
    made_up.written(tmp_path)
    rows = (tmp_path / "train.jsonl").read_text(encoding="utf-8")
    (tmp_path / "train.jsonl").write_text(f"{rows}\n{rows}", encoding="utf-8")
    given = [f"task.train={tmp_path}/train.jsonl", "encoder=tiny", "task.test_share=0"]
    done = check("+experiment=custom_finetune", *given, "output=check.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "cwd" / "check.json").read_text(encoding="utf-8"))
    assert {name: sum(own) for name, own in found["counts"]["splits"].items()} == {
        "train": 13,
        "dev": 3,
    }
    assert [(pair["split"], pair["other"]) for pair in found["shared"]] == [("dev", "train")]
    assert " test " not in done.stdout.split("estimated time")[0]


def test_texts_that_differ_little_from_one_of_train_are_warned_of(check, tmp_path):
    options = made_up.written(tmp_path)
    with (tmp_path / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"text": "the six wet dogs", "label": "A"}')
    done = check(*options)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "1 of 5 test texts are nearly equal to one of train:" in said
    assert "% the same: lines 5 (test) and " in said
    assert "- 20% of test are nearly equal to a text of train" in said
    assert "of dev are nearly equal" not in said


def test_odd_labels_and_unreadable_texts_are_told_under_look_out(check, tmp_path):
    options = made_up.written(tmp_path)
    train = [("", "A"), ("", "A"), ("one", "nan"), ("two", "B"), ("three", "B "), ("four", "b")]
    train += [("\u0436\u0443\u0436", label) for _, label in train]
    lines = [json.dumps({"text": text, "label": label}) for text, label in train]
    (tmp_path / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = check(*options)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout[done.stdout.index("Look out") :].split())
    for part in (
        "labels that may stand for a missing one: 'nan'",
        "or the spelling of a number only: 'B' and 'B ' and 'b'",
        "examples have a blank text: 2 of 12 in train",
        "the encoder cannot read 60% of the words of train",
    ):
        assert part in shown
    assert "labels are uneven" not in shown


def test_what_the_method_leaves_aside_is_no_error(check, tmp_path):
    options = [*made_up.written(tmp_path), "auxiliary.dapt.path=/nowhere/corpus.txt"]
    done = check(*[o for o in options if "stages" not in o], "method=finetune")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "auxiliary dapt: there is no unlabelled text at /nowhere/corpus.txt" in text
    assert "dapt: no domain text" in text


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("auxiliary.dapt.path=/nowhere/corpus.txt", "/nowhere/corpus.txt"),
        ("task.metric=acuracy", "task.metric=acuracy"),
        ("micro_batch_size=0", "micro_batch_size"),
        ("output=/nowhere/check.json", "output=/nowhere/check.json"),
        ("task.max_lenght=8", "did you mean task.max_length?"),
        ("-m", "leave out -m"),
    ],
)
def test_what_would_end_the_run_is_the_same_line(check, tmp_path, option, named):
    done = check(*made_up.written(tmp_path), option)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert named in line
    assert list((tmp_path / "cwd").iterdir()) == []


def test_images_have_no_lengths_and_no_words(check):
    done = check("+experiment=digits_meta", "encoder.depth=10", "encoder.width=1")
    assert done.returncode == 0, done.stderr
    assert "lengths in tokens" not in done.stdout
    assert "vocabulary" not in done.stdout
    assert "pretrain" in done.stdout
    assert "images, forwards and backwards" in done.stdout


def test_the_leaks_of_a_published_task_are_found(check, tmp_path, real_data):
    corpus = real_data / "corpora" / "cs_acl_papers.txt.gz"
    done = check(
        "task=acl_arc", f"data_dir={real_data}", "encoder=tiny", "auxiliary=dapt_tapt",
        f"auxiliary.dapt.path={corpus}", f"cache_dir={tmp_path}/cache", "output=check.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "cwd" / "check.json").read_text(encoding="utf-8"))
    train = found["repeated"][0]
    assert (train["examples"], train["exact"], train["contradictory"]) == (1688, 418, 20)
    seen = {(pair["split"], pair["other"]): pair["exact"] for pair in found["shared"]}
    assert (seen["dev", "train"], seen["test", "train"]) == (43, 52)
    assert found["auxiliaries"] == {"dapt": 1688, "tapt": 1688}
    assert "Begin with method=dapt_tapt" in done.stdout
