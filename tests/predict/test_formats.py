"""Every format: what was read is written again, in order, beside what was predicted."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tartan.data.table
from tartan.errors import UserError
from tests.predict.conftest import LABELS, TEXTS

ADDED = ["predicted_label", *(f"probability_{label}" for label in LABELS)]


def csv_bytes(rows, delimiter=",", end="\r\n"):
    content = io.StringIO(newline="")
    writer = csv.writer(content, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    return content.getvalue().encode()


def read_csv(content, delimiter=","):
    text = content.decode("utf-8")
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def check_predictions(columns):
    """Columns by name: probabilities sum to one, and the label is the most probable one's."""
    numbers = np.array([[float(v) for v in columns[name]] for name in ADDED[1:]]).T
    np.testing.assert_allclose(numbers.sum(axis=1), 1, atol=1e-6)
    assert columns["predicted_label"] == [LABELS[i] for i in numbers.argmax(axis=1)]
    assert len(set(columns["predicted_label"])) > 1


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".csv", ";"), (".tsv.gz", "\t")])
def test_csv_keeps_all_fields_and_their_order(predict, tmp_path, suffix, delimiter):
    rows = [["id", "text", "odd, name"], *([str(i), t, f"x{i}"] for i, t in enumerate(TEXTS))]
    source, target = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    content = csv_bytes(rows, delimiter)
    source.write_bytes(gzip.compress(content) if "gz" in suffix else content)
    counts = predict(source, target)
    written = target.read_bytes()
    header, *found = read_csv(gzip.decompress(written) if "gz" in suffix else written, delimiter)
    assert header == [*rows[0], *ADDED]
    assert [row[:3] for row in found] == rows[1:]
    check_predictions({name: [row[i] for row in found] for i, name in enumerate(header)})
    assert counts.rows == len(TEXTS)


def test_json_objects_keep_their_fields(predict, tmp_path):
    records = [{"text": text} for text in TEXTS]
    records += [{"n": 1.5, "big": 12345678901234567890, "text": "ü", "deep": {"x": [1, None]}}]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n\n".join(map(json.dumps, records)), encoding="utf-8")
    predict(source, target)
    found = [json.loads(line) for line in target.read_text(encoding="utf-8").split("\n")[:-1]]
    check_predictions({name: [record[name] for record in found] for name in ADDED})
    assert [list(record)[-4:] for record in found] == [ADDED] * len(records)
    assert [{n: r[n] for n in r if n not in ADDED} for r in found] == records


def test_parquet_keeps_types_and_order(predict, tmp_path, monkeypatch):
    monkeypatch.setattr(tartan.data.table, "CHUNK_ROWS", 4)
    table = pa.table(
        {
            "id": pa.array(range(len(TEXTS)), pa.int16()),
            "text": pa.array(TEXTS).dictionary_encode(),
            "when": pa.array([None, *range(len(TEXTS) - 1)], pa.timestamp("ms")),
            "tags": pa.array([["a"], None, *([[]] * (len(TEXTS) - 2))]),
        }
    ).replace_schema_metadata({"made": "by hand"})
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source, row_group_size=6)
    predict(source, target, text="text")
    found = pq.read_table(target)
    assert found.drop_columns(ADDED).schema.equals(table.schema)
    assert found.drop_columns(ADDED).to_pylist() == table.to_pylist()
    assert found.schema.metadata[b"made"] == b"by hand"
    assert found.schema.names == [*table.schema.names, *ADDED]
    check_predictions({name: found[name].to_pylist() for name in ADDED})


KINDS = ("csv", "tsv.gz", "jsonl.zst", "parquet")


def write_rows(path, kind):
    """`TEXTS` with a number, in a format of `KINDS`; types as the format has them."""
    rows = [{"n": i, "text": text} for i, text in enumerate(TEXTS)]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return
    if "jsonl" in kind:
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    else:
        records = [["n", "text"], *([str(row["n"]), row["text"]] for row in rows)]
        content = csv_bytes(records, "\t" if "tsv" in kind else ",")
    with pa.output_stream(str(path), compression="detect") as file:
        file.write(content)


def read_rows(path, kind):
    if kind == "parquet":
        return pq.read_table(path).to_pylist()
    with pa.input_stream(str(path), compression="detect") as file:
        content = file.read()
    if "jsonl" in kind:
        return [json.loads(line) for line in content.decode().split("\n")[:-1]]
    header, *rows = read_csv(content, "\t" if "tsv" in kind else ",")
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.mark.parametrize("source", KINDS)
def test_a_format_turns_into_another(predict, tmp_path, source):
    write_rows(tmp_path / f"in.{source}", source)
    expected = None
    for target in KINDS:
        path = tmp_path / f"out.{target}"
        if (source, target) == ("jsonl.zst", "parquet"):
            with pytest.raises(UserError, match="no types for Parquet"):
                predict(tmp_path / f"in.{source}", path)
            continue
        predict(tmp_path / f"in.{source}", path)
        rows = read_rows(path, target)
        assert [row["text"] for row in rows] == TEXTS
        is_text = source in ("csv", "tsv.gz") or target in ("csv", "tsv.gz")
        numbers = range(len(TEXTS))
        assert [row["n"] for row in rows] == ([str(n) for n in numbers] if is_text else [*numbers])
        found = [[row[ADDED[0]], *(np.float32(row[name]) for name in ADDED[1:])] for row in rows]
        expected = expected or found
        assert found == expected


def test_a_field_that_the_first_rows_have_not_is_not_lost_in_csv(predict, tmp_path):
    lines = ['{"text": "a"}'] * 101 + ['{"text": "b", "m": 1}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    with pytest.raises(UserError, match=r"a\.jsonl, line 102: the first rows have no m"):
        predict(tmp_path / "a.jsonl", tmp_path / "b.csv")


ODD = ["1", '"s"', "2.5", str(10**30), '[1, "a"]', "null", "true", '{"x": [1]}', "NaN"]


def test_json_of_any_fields_becomes_csv_as_it_is_spelled(predict, tmp_path):
    rows = [f'{{"text": "x", "id": {value}}}' for value in ODD]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    predict(tmp_path / "a.jsonl", tmp_path / "b.csv", text="text")
    header, *found = read_csv((tmp_path / "b.csv").read_bytes())
    assert header[:2] == ["text", "id"]
    spelled = {'"s"': "s", "null": ""}
    assert [row[1] for row in found] == [spelled.get(value, value) for value in ODD]


def test_numbers_that_json_has_not_become_null(predict, tmp_path):
    pairs = pa.array([[("k", math.nan)], []], pa.map_(pa.string(), pa.float64()))
    columns = {"text": ["a", "b"], "v": [math.nan, 1.5], "w": [[math.inf], [2.0]], "m": pairs}
    odd = pa.table(columns)
    pq.write_table(odd, tmp_path / "a.parquet")
    predict(tmp_path / "a.parquet", tmp_path / "b.jsonl", text="text")
    lines = (tmp_path / "b.jsonl").read_text().splitlines()
    found = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert [(row["v"], row["w"]) for row in found] == [(None, [None]), (1.5, [2.0])]
    assert found[0]["m"] == [["k", None]]


def test_columns_without_a_name_are_named_as_in_pandas(predict, tmp_path):
    (tmp_path / "a.csv").write_text("text,,\nx,1,2\n")
    predict(tmp_path / "a.csv", tmp_path / "b.jsonl")
    found = json.loads((tmp_path / "b.jsonl").read_text())
    assert (found["text"], found["Unnamed: 1"], found["Unnamed: 2"]) == ("x", "1", "2")


def test_values_of_any_type_become_text(predict, tmp_path):
    when = datetime.datetime(2020, 1, 2, 3, 4)
    columns = {"text": ["a"], "b": [True], "list": [["x", "y"]], "none": [None], "when": [when]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    predict(tmp_path / "a.parquet", tmp_path / "b.csv", text="text")
    _, row = read_csv((tmp_path / "b.csv").read_bytes())
    assert row[:5] == ["a", "true", '["x", "y"]', "", "2020-01-02 03:04:00"]
    predict(tmp_path / "a.parquet", tmp_path / "b.jsonl", text="text")
    found = json.loads((tmp_path / "b.jsonl").read_text())
    own = {"text": "a", "b": True, "list": ["x", "y"], "none": None, "when": str(when)}
    assert {name: found[name] for name in own} == own


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_no_rows_are_a_file_without_rows(predict, tmp_path, kind):
    source, target = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"text": pa.array([], pa.string())}), source)
    else:
        source.write_bytes(b"text\n" if kind == "csv" else b"")
    assert predict(source, target).rows == 0
    if kind == "parquet":
        assert pq.read_table(target).schema.names == ["text", *ADDED]
    else:
        assert target.read_bytes().count(b"\n") == (kind == "csv")


def test_new_columns_can_have_a_prefix(predict, tmp_path):
    (tmp_path / "a.csv").write_text("text,predicted_label\nx,before\n")
    with pytest.raises(UserError, match="a column predicted_label already"):
        predict(tmp_path / "a.csv", tmp_path / "b.csv")
    (tmp_path / "c.jsonl").write_text('{"text": "x"}\n{"text": "x", "probability_no": 1}\n')
    with pytest.raises(UserError, match="a column probability_no already"):
        predict(tmp_path / "c.jsonl", tmp_path / "d.jsonl")
    predict(tmp_path / "a.csv", tmp_path / "b.csv", prefix="new_")
    header, row = read_csv((tmp_path / "b.csv").read_bytes())
    assert header == ["text", "predicted_label", *(f"new_{name}" for name in ADDED)]
    assert row[:2] == ["x", "before"]


@pytest.mark.parametrize(("target", "gz"), [("csv", ""), ("jsonl", ".gz")])
def test_lines_of_text_are_rows_and_blank_ones_too(predict, tmp_path, target, gz):
    lines = ["one, two", "", "  three ", 'a "quote"', "café"]
    content = "\r\n".join(lines).encode()
    (tmp_path / f"in.txt{gz}").write_bytes(gzip.compress(content) if gz else content)
    predict(tmp_path / f"in.txt{gz}", tmp_path / f"out.{target}")
    rows = read_rows(tmp_path / f"out.{target}", target)
    assert [row["text"] for row in rows] == lines
    assert list(rows[0]) == ["text", *ADDED]
