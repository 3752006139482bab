"""`python -m src.check model=FOLDER` as a user calls it."""

from __future__ import annotations

import json
from io import StringIO

import pandas as pd
import pytest

from tartan.evaluation.label_quality import DOUBTFUL
from tests.conftest import toy_rows
from tests.programs import called_for_text

pytestmark = pytest.mark.slow
PLANTED = (4, 17, 30)
"""Rows of train whose label is wrong."""


@pytest.fixture(scope="module")
def run(tmp_path_factory, cache_dir):
    """A run on the toy task, with planted labels and rows without a label, and its options."""
    folder = tmp_path_factory.mktemp("it=is, here")
    rows = toy_rows()["train"] * 1
    for row in PLANTED:
        rows[row] |= {"label": "R" if rows[row]["label"] == "A" else "A"}
    rows += [{"text": f"no label for {n} {word}", "label": ""} for n in range(20) for word in "xy"]
    rows.append({"text": "  NO label for 3 x", "label": ""})
    rows.append({"text": rows[0]["text"].upper(), "label": ""})
    lines = [json.dumps(row) for row in rows]
    (folder / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "more.txt").write_text("one more\nred apple\n\none  MORE", encoding="utf-8")
    done = called_for_text(
        "src.run", "encoder=tiny", "task=files", f"task.train='{folder}/train.jsonl'",
        "task.empty_label=unlabelled", "task.name=toy", "task.test_share=0", "task.max_length=16",
        "method=finetune", "auxiliary=none", "max_steps=4", f"cache_dir={cache_dir}",
        "trainer.enable_progress_bar=false", f"hydra.run.dir='{folder}/run'", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


def checked(run, *options):
    return called_for_text("src.check", f"model={run}", *options, cwd=run.parent)


def test_doubtful_labels_are_written_with_their_lines(run):
    done = checked(run / "classifier", f"output={run.parent}/doubtful.csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = pd.read_csv(run.parent / "doubtful.csv")
    rows = [json.loads(line) for line in (run.parent / "train.jsonl").read_text().splitlines()]
    assert len(found) > 0
    for line, text, label, predicted in zip(
        found["line"], found["text"], found["label"], found["predicted"], strict=True
    ):
        assert rows[line - 1] == {"text": text, "label": label}
        assert predicted != label


def test_those_of_a_comparison_are_its_own(run):
    own = "text,label,predicted,probability_of_label\nnull,A,B,0.1\n"
    (run.parent / DOUBTFUL).write_text(own)
    try:
        assert checked(run).stdout == own
    finally:
        (run.parent / DOUBTFUL).unlink()


def test_suggestions_have_no_label_yet_and_are_the_same_again(run):
    done = checked(run, "suggest=7")
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(StringIO(done.stdout))
    assert found["text"].str.startswith("no label for").all()
    assert found["text"].nunique() == len(found) == 7
    assert set(found["predicted"]) <= {"A", "R", "S"}
    assert checked(run, "suggest=7").stdout == done.stdout
    more = checked(run, "suggest=99", "auxiliary.dapt.path=more.txt", "auxiliary.size=all")
    texts = pd.read_csv(StringIO(more.stdout))["text"].tolist()
    assert len(texts) == 40 + 2  # neither twice nor one that has a label
    assert {"one more", "red apple"} < set(texts)


def test_a_folder_that_names_other_programs_runs_none(run, tmp_path):
    text = (run / "config.yaml").read_text()
    target = "tartan.data.file_task.FileTask"
    assert target in text
    for hostile in ("os.system", "tartan.files.os.system", "tartan.launch.subprocess.Popen"):
        (tmp_path / "config.yaml").write_text(text.replace(target, hostile))
        done = checked(tmp_path)
        assert done.returncode == 1
        assert hostile in done.stderr
    (tmp_path / "config.yaml").unlink()
    assert "task=" in checked(tmp_path).stderr
