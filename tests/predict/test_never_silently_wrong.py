"""Whatever the format and dialect: the predictions of the rows, or one clear error."""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tartan.data.columns import write_trained_columns
from tartan.data.file_task import FileTask
from tartan.data.table.formats import Format
from tartan.data.table.open import open_lines, open_table
from tartan.errors import UserError
from tartan.experiment.run import run_experiment
from tests.in_process import config_of
from tests.predict.conftest import TEXTS

TRICKY = [text for text in TEXTS if text.strip()]


def as_csv(rows, separator=",", end="\r\n", encoding="utf-8", first="") -> bytes:
    content = io.StringIO(newline="")
    quoting = csv.QUOTE_MINIMAL if end == "\r\n" else csv.QUOTE_ALL
    writer = csv.writer(content, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writerows([list(rows[0]), *([row[name] for name in rows[0]] for row in rows)])
    return f"{first}{content.getvalue()}".encode(encoding)


def as_jsonl(rows, ascii_only=True) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode()


def as_list(rows) -> bytes:
    return json.dumps(rows).encode()


def as_arrow(rows, write=pq.write_table) -> bytes:
    sink = io.BytesIO()
    write(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def write_ipc(table, sink, new=pa.ipc.new_file):
    with new(sink, table.schema) as writer:
        writer.write_table(table)


def write_stream(table, sink):
    write_ipc(table, sink, pa.ipc.new_stream)


DIALECTS = {
    "commas.csv": as_csv,
    "semicolons.csv": lambda rows: as_csv(rows, ";"),
    "bars.csv": lambda rows: as_csv(rows, "|"),
    "tabs.csv": lambda rows: as_csv(rows, "\t"),
    "excel.csv": lambda rows: as_csv(rows, ";", encoding="utf-8-sig", first="sep=;\r\n"),
    "unix.csv": lambda rows: as_csv(rows, end="\n"),
    "old_mac.csv": lambda rows: as_csv(rows, end="\r"),
    "marked.csv": lambda rows: as_csv(rows, encoding="utf-8-sig"),
    "packed.csv.gz": lambda rows: gzip.compress(as_csv(rows)),
    "packed.csv.zst": lambda rows: pa.Codec("zstd").compress(as_csv(rows), asbytes=True),
    "tabs.tsv": lambda rows: as_csv(rows, "\t"),
    "commas.tsv": as_csv,
    "lines.jsonl": as_jsonl,
    "lines.ndjson": lambda rows: as_jsonl(rows, False),
    "marked.jsonl": lambda rows: b"\xef\xbb\xbf" + as_jsonl(rows),
    "packed.jsonl.gz": lambda rows: gzip.compress(as_jsonl(rows)),
    "lines.json": as_jsonl,
    "list.json": as_list,
    "pretty.json": lambda rows: json.dumps(rows, indent=2, ensure_ascii=False).encode(),
    "packed.json.zst": lambda rows: pa.Codec("zstd").compress(as_list(rows), asbytes=True),
    "columns.parquet": as_arrow,
    "file.arrow": lambda rows: as_arrow(rows, write_ipc),
    "stream.arrow": lambda rows: as_arrow(rows, write_stream),
}
OUTPUTS = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "jsonl"}


def output_of(name: str) -> str:
    kind = Path(name.removesuffix(".gz").removesuffix(".zst")).suffix[1:]
    return f"out.{OUTPUTS.get(kind, 'parquet')}"


def predictions(path: Path) -> list[list[object]]:
    """Label and scores as float32 of each row."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    else:
        first = path.read_text("utf-8-sig").splitlines()[0]
        separator = max(",;|\t", key=first.count)
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, delimiter=separator))
    scores = [name for name in rows[0] if name.startswith("probability_")]
    return [[row["predicted_label"], *(np.float32(row[name]) for name in scores)] for row in rows]


@pytest.fixture
def trained(classifier, tmp_path):
    """The classifier as one that was trained on these columns, in a folder of its own."""

    def call(text: str, pair: str | None = None) -> str:
        folder = shutil.copytree(classifier, tmp_path / "moved" / f"{text} {pair}")
        write_trained_columns({"text": text, "label": "y", "text_pair": pair}, folder)
        return str(folder)

    return call


def test_trained_on_one_dialect_a_classifier_predicts_alike_in_every_other(predict, tmp_path):
    rows = [
        {"words": a, "y": "AB"[i % 2], "more": b, "n": str(i)}
        for i, (a, b) in enumerate(zip(TRICKY, reversed(TRICKY), strict=True))
    ]
    for name, write in DIALECTS.items():
        (tmp_path / name).write_bytes(write(rows))
    train = tmp_path / "semicolons.csv"
    options = [
        "encoder=tiny", "task=files", *(f"task.{s}={train}" for s in ("train", "dev", "test")),
        "task.text=words", "task.text_pair=more", "task.max_length=32", f"cache_dir={tmp_path}",
        "max_steps=2", "trainer.enable_progress_bar=false", "trainer.precision=32-true",
        "method=finetune", "auxiliary=none", "method.stages.finetune.batch_size=8",
    ]  # fmt: skip
    run_experiment(config_of(options), tmp_path / "run")
    model = str(shutil.move(tmp_path / "run" / "classifier", tmp_path / "elsewhere"))
    found = {}
    for name in DIALECTS:
        target = tmp_path / "out" / name / output_of(name)
        target.parent.mkdir(parents=True)
        assert predict(tmp_path / name, target, model=model).rows == len(rows)
        found[name] = predictions(target)
    expected = found["columns.parquet"]
    assert len({score for _, score, _ in expected}) > len(rows) / 2
    for name, own in found.items():
        assert own == expected, name


def test_every_dialect_is_trained_on_the_same_rows(tmp_path):
    rows = [{"words": text, "y": "AB"[i % 2], "n": str(i)} for i, text in enumerate(TRICKY)]
    for name, write in DIALECTS.items():
        (tmp_path / name).write_bytes(write(rows))
        path = str(tmp_path / name)
        task = FileTask("own", "macro_f1", 8, train=path, dev=path, test=path, text="words").load()
        assert list(task.train.texts) == TRICKY, name
        assert [task.labels[i] for i in task.train.labels] == [row["y"] for row in rows], name
        assert (task.columns.text, task.columns.label) == ("words", "y"), name


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(st.lists(st.fixed_dictionaries({"id": texts, "a b": texts}), min_size=1, max_size=4))
def test_any_rows_are_read_alike_from_every_dialect(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    for name, write in DIALECTS.items():
        (folder / name).write_bytes(write(rows))
        found = [dict(row.values) for row in open_table(folder / name).rows()]
        assert found == rows, name


def test_a_column_that_is_missing_is_an_error_and_no_other_is_taken(predict, trained, tmp_path):
    for name, content in (
        ("a.csv", b"title\na title\n"),
        ("a.jsonl", b'{"title": "a title"}\n'),
        ("a.parquet", as_arrow([{"title": "a title"}])),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=r"no (column|field) 'body', .*text=(COL|F).*'title'"):
            predict(tmp_path / name, tmp_path / f"out-{name}", model=trained("body"))
        assert not (tmp_path / f"out-{name}").exists()
        shutil.rmtree(tmp_path / "moved")
    predict(tmp_path / "a.csv", tmp_path / "out.csv", model=trained("body"), text="title")


def test_a_model_of_pairs_is_never_given_single_texts(predict, trained, tmp_path):
    (tmp_path / "a.csv").write_text("one\nfirst\n")
    model = trained("one", "two")
    for options in ({}, {"text": "one"}):
        with pytest.raises(UserError, match=r"no column 'two', .*: text_pair=COLUMN"):
            predict(tmp_path / "a.csv", tmp_path / "out.csv", model=model, **options)
    (tmp_path / "b.csv").write_text("one,zwei\nfirst,second\n")
    predict(tmp_path / "b.csv", tmp_path / "b.out.csv", model=model, text_pair="zwei")
    (tmp_path / "c.jsonl").write_text('{"one": "first", "two": "second"}')
    predict(tmp_path / "c.jsonl", tmp_path / "c.out.jsonl", model=model)
    assert predictions(tmp_path / "b.out.csv") == predictions(tmp_path / "c.out.jsonl")


def test_standard_input_finds_its_dialect_too(predict, trained, tmp_path, monkeypatch):
    rows = [{"words": text, "n": "1"} for text in TRICKY]
    (tmp_path / "a.jsonl").write_bytes(as_jsonl(rows))
    predict(tmp_path / "a.jsonl", tmp_path / "a.out.jsonl", model=trained("words"))
    content = io.TextIOWrapper(io.BytesIO(as_csv(rows, ";", encoding="utf-8-sig")))
    monkeypatch.setattr("sys.stdin", content)
    model = str(tmp_path / "moved" / "words None")
    predict("-", tmp_path / "b.csv", model=model, format="csv")
    assert predictions(tmp_path / "b.csv") == predictions(tmp_path / "a.out.jsonl")


def test_standard_input_is_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"text\n" + b"a\n" * 5000)))
    table = open_lines(None, Format("csv"))
    assert len(table.sample()) == 100
    assert sum(len(chunk.rows) for chunk in table.chunks()) == 5000
    assert list(table.rows()) == []


def test_a_row_of_blanks_is_a_row(predict, trained, tmp_path):
    (tmp_path / "a.csv").write_text('words,n\n"",\na,1\n,\n')
    assert predict(tmp_path / "a.csv", tmp_path / "out.csv", model=trained("words")).rows == 3
