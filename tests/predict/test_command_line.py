"""`python -m src.predict` as a user calls it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from hydra import compose, initialize_config_dir

import tartan.data.table
from tartan.errors import UserError
from tartan.predict.main import quote_values
from tartan.predict.writer import Writer
from tests.conftest import ROOT
from tests.docs.test_pages import blocks
from tests.programs import called


@pytest.fixture
def cli(tmp_path):
    def call(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return called("src.predict", *arguments, "device=cpu", cwd=tmp_path)

    return call


def test_help_explains_every_option():
    content = yaml.safe_load((ROOT / "conf" / "predict.yaml").read_text(encoding="utf-8"))
    lines = content["hydra"]["help"]["template"].splitlines()
    explained = [line.partition("=")[0] for line in lines if line.partition("=")[0].isidentifier()]
    assert explained == [name for name in content if name not in ("defaults", "hydra")]


def test_a_file(cli, classifier, tmp_path):
    """Names of labels are made printable, and paths may hold what Hydra's grammar uses."""
    run = tmp_path / "task=a,b" / "seed=0"
    shutil.copytree(classifier.parent, run)
    config = json.loads((run / "classifier" / "config.json").read_text())
    config["id2label"] = {k: f"{label}\x1b[2J" for k, label in config["id2label"].items()}
    (run / "classifier" / "config.json").write_text(json.dumps(config))
    (tmp_path / "in, 1=2.csv").write_text('text\nred apple\n"a, b"\n')
    done = cli(f"model={run}", "input=in, 1=2.csv", "output=it's out.csv")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().startswith("2 rows; no\\x1b[2J: ")
    header, *rows = csv.reader(io.StringIO((tmp_path / "it's out.csv").read_text()))
    assert header[:2] == ["text", "predicted_label"]
    assert [row[0] for row in rows] == ["red apple", "a, b"]
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["in, 1=2.csv", "it's out.csv"]


def test_the_latest_run(cli, classifier, tmp_path):
    (tmp_path / "in.csv").write_text("text\nred apple\n")
    run = tmp_path / "runs" / "a=1,b" / "seed=0"
    shutil.copytree(classifier.parent, run)
    (run / "result.json").touch()
    done = cli("model=latest", "input=in.csv", "output=out.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines()[0] == "model runs/a=1,b/seed=0"
    elsewhere = cli("model=latest", "runs_dir=x", "input=in.csv", "output=b.csv")
    assert elsewhere.returncode == 1
    assert elsewhere.stderr.decode().startswith("error: model=latest: no finished run with a class")


@pytest.mark.parametrize(
    "value",
    ["${model}", r"\\${x}", "it's ${q}'", "$", "\\", "=,="],
)
def test_paths_are_taken_character_for_character(value):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("predict", overrides=quote_values([f"model={value}", f"input={value}"]))
    assert (config.model, config.input) == (value, value)


def test_a_wrong_command_line_is_one_line(cli):
    done = cli("model=x", "imput=a")
    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert "imput" in line


@pytest.mark.parametrize(
    ("content", "options", "place"),
    [
        ("title,body\na,b\n", {}, r"text=text: "),
        ("id,text\n1,a\n2\n", {}, r"in\.csv, line 3"),
        ('{"text": "a"}\n{"text": 3}\n', {}, r"in\.jsonl, line 2"),
        ("text\na\n", {"text_pair": "b"}, "text_pair=b"),
        ("text\na\n", {"max_length": 5000}, "max_length=5000"),
        ("text\na\n", {"output": "out.parquet.gz"}, "output=out.parquet.gz"),
    ],
)
def test_a_bad_input_or_option_is_named_and_leaves_nothing(
    content, options, place, predict, tmp_path
):
    source = tmp_path / ("in.jsonl" if content.startswith("{") else "in.csv")
    source.write_text(content)
    with pytest.raises(UserError, match=place):
        predict(source, options.pop("output", tmp_path / "out.csv"), **options)
    assert list(tmp_path.glob("out*")) == []


def test_a_file_that_is_there_is_kept_until_a_whole_one_replaces_it(predict, tmp_path, monkeypatch):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text\nred\nriver\n")
    target.write_text("mine")
    with pytest.raises(UserError, match=r"out\.csv exists already; .* overwrite=true"):
        predict(source, target)
    with monkeypatch.context() as patch:
        patch.setattr(tartan.data.table, "CHUNK_ROWS", 1)
        patch.setattr(Writer, "write", Mock(side_effect=[None, KeyboardInterrupt]))
        with pytest.raises(KeyboardInterrupt):
            predict(source, target, overwrite=True)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]
    predict(source, target, overwrite=True)
    assert target.read_text().startswith("text,predicted_label")


def test_a_folder_without_a_whole_classifier_is_refused(predict, tmp_path):
    from tartan.encoders.tiny import TinyEncoder

    (tmp_path / "in.csv").write_text("text\na\n")
    encoder = TinyEncoder().load()
    encoder.body.save_pretrained(tmp_path / "encoder")
    encoder.tokenizer.save_pretrained(tmp_path / "encoder")
    for folder, reason in ((tmp_path, "no config"), (tmp_path / "encoder", "classifier")):
        with pytest.raises(UserError, match=reason):
            predict(tmp_path / "in.csv", tmp_path / "out.csv", model=str(folder))


def test_texts_whose_calibrated_score_is_below_the_least_get_no_label(
    cli, classifier, tmp_path, monkeypatch
):
    shutil.copytree(classifier, tmp_path / "it")
    columns = {"text": "text", "text_pair": None, "label": "class"}
    (tmp_path / "it" / "columns.json").write_text(json.dumps(columns))
    table = "".join(f"word{i} {i},{'no' * (i % 2)}\n" for i in range(40))  # every other has one
    (tmp_path / "in.csv").write_text(f"text,class\n{table}")

    def rows(name, *options):
        done = cli("model=it", "input=in.csv", f"output={name}", *options)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(), list(csv.DictReader((tmp_path / name).open(newline="")))

    def highest(row):
        return max(float(row[name]) for name in row if name.startswith("probability_"))

    _, before = rows("before.csv")
    (tmp_path / "it" / "calibration.json").write_text('{"temperature": 0.25, "other": 1}')
    least = sorted(map(highest, rows("all.csv")[1]))[20]
    said, after = rows("after.csv", f"min_score={least}")
    judged = [row for row in after if row["class"] and row["predicted_label"]]
    share = 100 * sum(row["predicted_label"] == "no" for row in judged) / len(judged)
    assert f"50.0 % have a label; {share:.1f} % of {len(judged)} are right" in said
    for row, other in zip(after, before, strict=True):
        kept = highest(row) >= least
        assert row["predicted_label"] == (other["predicted_label"] if kept else "")
        assert highest(row) > highest(other)  # a temperature below 1 makes certain
    assert rows("raw.csv", "calibrated=false")[1] == before
    # what the page does with Transformers alone
    pipelined, corrected = blocks(ROOT / "docs" / "predict.md", "python")[:2]
    code = f"{pipelined}\n{corrected}".replace("runs/quickstart/seed=0/classifier", "it")
    names: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    exec(code.replace("a text", "word0 0"), names)
    for one, score in zip(names["found"], names["scores"].tolist(), strict=True):
        assert score == pytest.approx(float(after[0][f"probability_{one['label']}"]), abs=1e-5)
    for wrong in ("0", "NaN", '"1"'):
        (tmp_path / "it" / "calibration.json").write_text(f'{{"temperature": {wrong}}}')
        done = cli("model=it", "input=in.csv", "output=no.csv")
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
