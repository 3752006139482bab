"""`python -m src.predict` as a user calls it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hydra import compose, initialize_config_dir

from tartan.errors import UserError
from tartan.predict.main import _predict, quote_values
from tests.conftest import ROOT
from tests.predict.conftest import LABELS
from tests.programs import called


@pytest.fixture
def cli(tmp_path):
    def call(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return called("src.predict", *arguments, cwd=tmp_path, given=given)

    return call


def test_help_explains_every_option():
    content = yaml.safe_load((ROOT / "conf" / "predict.yaml").read_text(encoding="utf-8"))
    lines = content["hydra"]["help"]["template"].splitlines()
    told = [line.partition("=")[0] for line in lines if line.partition("=")[0].isidentifier()]
    assert told == [name for name in content if name not in ("defaults", "hydra")]


def test_a_file(cli, classifier, tmp_path):
    (tmp_path / "in, 1=2.csv").write_text('text\nred apple\n"a, b"\n')
    run = classifier.parent  # the run folder, whose name holds = and ,
    done = cli(f"model={run}", "input=in, 1=2.csv", "output=it's out.csv", "device=cpu")
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    counts, name = done.stdout.decode().splitlines()
    assert counts.startswith("2 rows; no: ")
    assert name == "it's out.csv"
    header, *rows = csv.reader(io.StringIO((tmp_path / name).read_text()))
    assert header == ["text", "predicted_label", *(f"probability_{label}" for label in LABELS)]
    assert [row[0] for row in rows] == ["red apple", "a, b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in, 1=2.csv", "it's out.csv"]


def test_the_latest_run(cli, classifier, tmp_path):
    (tmp_path / "in.csv").write_text("text\nred apple\n")
    run = tmp_path / "runs" / "a=1,b" / "seed=0"
    shutil.copytree(classifier.parent, run)
    (run / "result.json").touch()
    done = cli("model=latest", "input=in.csv", "output=out.csv", "device=cpu")
    assert done.returncode == 0, done.stderr
    said, _, name = done.stdout.decode().splitlines()
    assert (said, name) == ("model runs/a=1,b/seed=0", "out.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    refused = cli("model=latest", "input=other.csv", "output=c.csv", "device=cpu")
    assert refused.returncode == 1
    assert refused.stdout.decode().strip() == "model runs/a=1,b/seed=0"
    elsewhere = cli("model=latest", "runs_dir=x", "input=in.csv", "output=b.csv", "device=cpu")
    assert elsewhere.returncode == 1
    assert elsewhere.stderr.decode().startswith("error: model=latest: no finished run with a class")


@pytest.mark.parametrize(
    "value",
    [
        *("${model}", "a${b}c", r"\${x}", r"\\${x}", "it's ${q}'", "${oc.env:HOME}", r"a\b ${c"),
        *("$", "${", "\\", "a\\'${x}\\", "${a}${b}", r"plain\path", "{a}", "${a:b,c}}", "=,="),
    ],
)
def test_paths_are_taken_character_for_character(value, monkeypatch):
    taken = []
    monkeypatch.setattr("tartan.predict.predict.predict_file", taken.append)
    options = [f"{name}={value}" for name in ("model", "input", "output")]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("predict", overrides=quote_values(options))
    with pytest.raises(AttributeError):  # there is no result
        _predict(config, "-")
    assert [(s.model, s.input, s.output) for s in taken] == [(value, value, value)]


def test_a_label_does_not_command_the_terminal(cli, classifier, tmp_path):
    shutil.copytree(classifier, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    labels = {name: f"{label}\x1b[2J\x9b1m" for name, label in config["id2label"].items()}
    path.write_text(json.dumps(config | {"id2label": labels}))
    (tmp_path / "in.csv").write_text("text\nred apple\n")
    done = cli(f"model={tmp_path}/model", "input=in.csv", "output=out.csv", "device=cpu")
    assert done.returncode == 0, done.stderr
    assert b"\\x1b[2J\\x9b1m" in done.stdout
    assert "\x1b" not in done.stdout.decode() + done.stderr.decode()


def test_standard_input_and_output(cli, classifier):
    given = '{"text": "räv"}\n{"text": "b"}\n'.encode()
    options = [f"model={classifier}", "input=-", "output=-", "device=cpu", "format=jsonl"]
    done = cli(*options, given=given)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [record["text"] for record in records] == ["räv", "b"]
    assert all(record["predicted_label"] in LABELS for record in records)
    assert done.stderr.startswith(b"2 rows; ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "error: model= is missing; e.g. python -m src.predict model=latest"),
        (["model=x", "imput=a"], "imput"),
    ],
)
def test_a_wrong_command_line_is_one_line(cli, arguments, said):
    done = cli(*arguments)
    assert done.returncode == 1
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert said in line


@pytest.fixture
def files(tmp_path, classifier):
    """Inputs by name, good and bad."""
    contents = {
        "good.csv": b"text\na\n",
        "two.csv": b"title,body\na,b\n",
        "short.csv": b"id,text\n1,a\n2\n",
        "bad.jsonl": b'{"text": "a"}\n{"text": \n',
        "lacks.jsonl": b'{"text": "a", "id": 1}\n\n{"id": 2}\n',
        "number.jsonl": b'{"n": 1}\n',
        "late.jsonl": b'{"text": "a"}\n{"text": "b", "probability_no": 1}\n',
        "no.parquet": b"PAR1 but not really",
        "texts.doc": b"",
    }
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "good.parquet")
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("missing.csv", {}, r"missing\.csv does not exist"),
        (".", {}, "is not a file"),
        ("texts.doc", {"output": "-"}, r"texts\.doc: the name must end in \.csv"),
        ("two.csv", {}, r"two\.csv: cannot tell which column holds the texts; name it: text=COL"),
        ("two.csv", {"text": "txt"}, r"text=txt: .*two\.csv has the columns 'title', 'body'"),
        ("good.csv", {"text_pair": "b"}, r"text_pair=b: .*good\.csv has the columns 'text'"),
        ("short.csv", {}, r"short\.csv, line 3: 1 fields, but the header has 2"),
        ("bad.jsonl", {}, r"bad\.jsonl, line 2: not JSON"),
        ("lacks.jsonl", {}, "line 3: the column 'text' is missing"),
        ("number.jsonl", {"text": "n"}, "line 1: the column 'n' is no text but int"),
        ("late.jsonl", {}, "line 2: there is a column probability_no already"),
        ("no.parquet", {}, r"no\.parquet cannot be read"),
        ("good.csv", {"batch_size": 0}, "batch_size"),
        ("good.csv", {"device": "tpu"}, "device=tpu is none of auto, cpu"),
        ("good.csv", {"device": "cuda:99"}, "device=cuda:99 is none of auto, cpu"),
        ("good.csv", {"max_length": 5000}, "max_length=5000 is more than the 512 tokens"),
        ("-", {"output": "x.parquet"}, r"input=- and .* need a format of text lines: format=csv"),
        ("good.parquet", {"output": "-"}, r"and output=- need a format of text lines: format=csv"),
    ],
)
def test_a_bad_input_is_one_line(files, predict, source, options, said):
    options = dict(options)
    suffix = ".csv" if source in (".", "-") else "".join(files.joinpath(source).suffixes)
    target = files / f"out{suffix}"
    output = options.pop("output", target)
    with pytest.raises(UserError, match=said) as caught:
        predict(source if source == "-" else files / source, output, **options)
    assert "\n" not in str(caught.value)
    assert not target.exists()
    begun = (files / f"{target.name}.unfinished").exists()  # rows before the bad one are kept
    assert (files / f"{target.name}.lock").exists() == begun
    assert not (files / f"{target.name}.part").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("out.json", r"output=.*out\.json: the name must end in \.csv"),
        ("out.parquet.gz", "output=.*: the name must end in"),
        ("nowhere/out.csv", "there is no folder"),
        ("other.csv", "exists already"),
    ],
)
def test_a_bad_output_is_one_line(files, predict, target, said):
    (files / "other.csv").touch()
    with pytest.raises(UserError, match=said):
        predict(files / "good.csv", files / target)


def test_the_input_is_not_overwritten(files, predict):
    with pytest.raises(UserError, match="input and output are the same file"):
        predict(files / "good.csv", files / "good.csv", overwrite=True)
    assert (files / "good.csv").read_bytes() == b"text\na\n"


def test_what_is_no_classifier_is_said(files, predict, classifier):
    def complaint(model):
        with pytest.raises(UserError) as caught:
            predict(files / "good.csv", files / "out.csv", model=str(model))
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "holds no classifier (no config.json)" in complaint(files / "nowhere")
    assert "holds no classifier (no config.json)" in complaint(files)
    shutil.copytree(classifier, files / "body")
    (files / "body" / "model.safetensors").write_bytes(b"torn")
    assert "cannot be read" in complaint(files / "body")


def test_a_body_without_a_head_is_no_classifier(files, predict, tmp_path):
    from tartan.encoders.tiny import TinyEncoder

    encoder = TinyEncoder().load()
    encoder.body.save_pretrained(tmp_path / "encoder")
    encoder.tokenizer.save_pretrained(tmp_path / "encoder")
    with pytest.raises(UserError, match="it is not a whole classifier"):
        predict(files / "good.csv", files / "out.csv", model=str(tmp_path / "encoder"))
