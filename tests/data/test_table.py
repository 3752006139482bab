"""Tables of every format: columns, rows with their numbers, and what is said of malformed ones."""

from __future__ import annotations

import csv
import gzip
import io
import json

import datasets
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.table.arrow import table_of_dataset
from tartan.data.table.open import open_hub, open_table
from tartan.errors import UserError

COLUMNS = ("id", "text", "label")
ROWS = [
    {"id": "1", "text": 'one, two; "three"', "label": "A"},
    {"id": "2", "text": "first line\nsecond\tline", "label": "B"},
    {"id": "3", "text": "caf\u00e9", "label": "A"},
]


def as_csv(separator=",", rows=ROWS, end="\r\n"):
    file = io.StringIO(newline="")
    quoting = csv.QUOTE_MINIMAL if "\n" in end else csv.QUOTE_ALL
    writer = csv.DictWriter(file, COLUMNS, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_jsonl():
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def as_parquet(rows=ROWS):
    file = io.BytesIO()
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


def table_of(folder, name, content):
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return open_table(path)


@pytest.mark.parametrize(
    ("name", "content", "numbers"),
    [
        ("t.csv", as_csv(), [2, 3, 5]),
        ("t.csv.gz", as_csv(), [2, 3, 5]),
        ("t.CSV", as_csv(), [2, 3, 5]),
        ("t.tsv", as_csv("\t"), [2, 3, 5]),
        ("t.tsv.gz", as_csv("\t"), [2, 3, 5]),
        ("t.jsonl", as_jsonl(), [1, 2, 3]),
        ("t.jsonl.gz", as_jsonl(), [1, 2, 3]),
        ("t.json", as_jsonl(), [1, 2, 3]),
        ("t.json", json.dumps(ROWS, indent=1).encode(), [1, 2, 3]),
        ("t.parquet", as_parquet(), [1, 2, 3]),
        ("t.parquet.gz", as_parquet(), [1, 2, 3]),
    ],
)
def test_every_format_gives_the_same_rows_as_often_as_asked(name, content, numbers, tmp_path):
    table = table_of(tmp_path, name, content)
    assert table.columns == COLUMNS
    assert table.remark is None
    for _ in range(2):
        rows = list(table.rows())
        assert [dict(row.values) for row in rows] == ROWS
        assert [row.number for row in rows] == numbers


@pytest.mark.parametrize(
    ("content", "remark"),
    [
        (as_csv(";"), "semicolons separate its columns"),
        (as_csv("|"), "vertical bars separate its columns"),
        (as_csv("\t"), "tabs separate its columns"),
        (b"sep=;\r\n" + as_csv(";"), "semicolons separate its columns"),
        (b"\n \nsep=;\n" + as_csv(";"), "semicolons separate its columns"),
        (b"\xef\xbb\xbf" + as_csv(), None),
        (b"\xef\xbb\xbf" + as_csv(";"), "semicolons separate its columns"),
        (b"\n\r\n" + as_csv(), None),
        (as_csv(end="\r"), None),
        (as_csv().replace(b"id,text,label", b"id , text,label "), None),
    ],
)
def test_what_spreadsheet_programs_write_is_read_and_what_was_detected_is_told(
    content, remark, tmp_path
):
    table = table_of(tmp_path, "t.csv", content)
    assert [dict(row.values) for row in table.rows()] == ROWS
    assert table.remark == remark


def test_columns_without_a_name_are_left_out(tmp_path):
    table = table_of(tmp_path, "t.csv", b",text,label,\n0,a,b,\n1,c,d,\n")
    assert table.columns == ("text", "label")
    assert [dict(row.values) for row in table.rows()] == [
        {"text": "a", "label": "b"},
        {"text": "c", "label": "d"},
    ]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, texts), max_size=5), st.sampled_from(",;\t|"))
def test_whatever_the_csv_module_writes_is_read_back(tmp_path_factory, pairs, separator):
    rows = [{"id": str(i), "text": a, "label": b} for i, (a, b) in enumerate(pairs)]
    table = table_of(tmp_path_factory.mktemp("t"), "t.csv", as_csv(separator, rows))
    assert [dict(row.values) for row in table.rows()] == rows


def test_a_file_of_one_column_may_hold_its_name_as_a_text(tmp_path):
    table = table_of(tmp_path, "t.csv", b"text\na\ntext\nb\n")
    assert [row.values["text"] for row in table.rows()] == ["a", "text", "b"]


def test_other_objects_of_objects_are_rows(tmp_path):
    for name, content in (
        ("t.json", b'{"a": {"en": "b"}}'),
        ("t.jsonl", b'{"a": {"b": 1}}\n' * 2),
        ("t.json", b'[{"a": {"b": 1}, "c": 1}]'),
    ):
        assert "a" in table_of(tmp_path, name, content).columns


def test_a_long_text_is_read(tmp_path):
    table = table_of(tmp_path, "t.csv", b"text,label\n" + b"a" * 300_000 + b",x\n")
    (row,) = table.rows()
    assert len(row.values["text"]) == 300_000


HEAD = b"text,label\na,b\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "t.csv",
            HEAD + b"c\n",
            "t.csv, line 3: 1 field, but the header has 2 ('text', 'label'); ",
        ),
        (
            "t.csv",
            HEAD + b'"x\ny",b\nc,d,e\n',
            "t.csv, line 5: 3 fields, but the header has 2 ('text', 'label'); put a text that "
            "holds commas or line breaks in double quotes",
        ),
        ("t.csv", HEAD + b'"c,d\ne,f\n', "t.csv, line 3: a double quote that opens in this row"),
        ("t.csv", HEAD + b'"c" d,e\n', "t.csv, line 3: a double quote inside a quoted field must"),
        ("t.csv", HEAD + b"caf\xe9,d\n", "t.csv, line 3: not UTF-8; save it as UTF-8, or: iconv "),
        ("t.csv", HEAD.decode().encode("utf-16"), "t.csv, line 1: not UTF-8"),
        ("t.csv", HEAD.decode().encode("utf-16-le"), "t.csv, line 1: holds a null character"),
        ("t.csv", HEAD + HEAD, "t.csv, line 3: repeats the header; remove the line (if "),
        ("t.csv", b"\xef\xbb\xbf" + (HEAD + b"\xef\xbb\xbf" + HEAD), "t.csv, line 3: repeats the"),
        (
            "t.tsv",
            b'"text"\t label\na\tb\n\n\xef\xbb\xbf"text"\tlabel \nc\td\n',
            "t.tsv, line 4: repeats the header",
        ),
        ("t.csv", b"text,text\n", "t.csv: its header names the column 'text' twice; rename one"),
        (
            "t.csv",
            b"PK\x03\x04" + HEAD,
            "t.csv, line 1: no text but an archive, as Excel's",
        ),
        ("t.csv", b"\n\nsep=;\n\na;b\n1;2;3\n", "t.csv, line 6: 3 fields, but the header has 2"),
        ("t.xlsx", b"PK", "t.xlsx is a spreadsheet program's own file; save it as CSV (UTF-8)"),
        ("t.doc", b"", "t.doc: the name must end in .csv, .tsv, .jsonl, .ndjson, .json,"),
        ("t.json", b'[{"text": "a"}, 5]', "t.json, row 2: expected an object"),
        ("t.json", b'[{"text": "a"},\n}]', "t.json, row 2: expected an object"),
        ("t.json", b'[{"a": 1},\n{"a" 2}]', "t.json, row 2: not JSON (Expecting ':' delimiter)"),
        (
            "t.jsonl",
            b'{"a": 1}\n  {"a" 2}\n',
            "t.jsonl, line 2: not JSON (Expecting ':' delimiter, column 8)",
        ),
        ("t.jsonl", b'{"a": 1\n', "t.jsonl, line 1: not JSON (Expecting ',' delimiter, column 8)"),
        ("t.jsonl", b'{"a": 1, "a": 2}', "t.jsonl, line 1: names the field 'a' twice; rename one"),
        (
            "t.json",
            b'{"text": {"0": "a", "1": "b"}, "label": {"0": "A", "1": "B"}}',
            "t.json is one object of columns, as pandas' to_json writes by default; write one "
            'object a row: to_json(..., orient="records")',
        ),
        (
            "t.jsonl",
            b'{"text": {"0": "a"}, "label": {"0": "A"}}\n',
            "t.jsonl is one object of columns, as pandas' to_json writes by default; write one "
            'object a row: to_json(..., orient="records", lines=True)',
        ),
        ("t.json", b'{"text": {"0": "a", "7": "b"}}', "t.json is one object of columns"),
        ("t.parquet", b"PAR1", "t.parquet (Parquet) cannot be read: "),
    ],
)
def test_a_malformed_file_is_one_line_that_names_file_and_place(name, content, message, tmp_path):
    with pytest.raises(UserError) as caught:
        list(table_of(tmp_path, name, content).rows())
    assert str(caught.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(caught.value)


def test_a_gzip_file_that_is_none_or_ends_early_is_named(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(HEAD)
    with pytest.raises(UserError, match=r"t\.csv\.gz cannot be read: Not a gzipped file"):
        open_table(path)
    whole = gzip.compress(b"text,label\n" + b"".join(b"a %d,b\n" % i for i in range(20_000)))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cannot be read: Compressed file ended .* \(line \d+\)"):
        list(open_table(path).rows())


def test_nothing_but_the_beginning_is_read_to_tell_the_columns(tmp_path):
    table = table_of(tmp_path, "t.csv", HEAD * 10_000 + b"\xff\n")
    assert table.columns == ("text", "label")
    table = table_of(tmp_path, "t.jsonl", as_jsonl() * 1000 + b"\xff\n")
    assert table.columns == COLUMNS


def test_the_fingerprint_is_that_of_the_content(tmp_path):
    first = table_of(tmp_path, "a.csv", as_csv()).fingerprint
    assert table_of(tmp_path, "b.csv", as_csv()).fingerprint == first
    assert table_of(tmp_path, "b.csv", as_csv(";")).fingerprint != first


@pytest.fixture
def saved(tmp_path):
    """A data set as the Hub has it: Parquet files named by their splits, labels as numbers."""
    folder = tmp_path / "reviews"
    (folder / "data").mkdir(parents=True)
    features = datasets.Features(
        {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    for split, labels in (("train", [1, 0, 1]), ("validation", [0]), ("test", [-1])):
        columns = {"sentence": [f"{split} {i}" for i in range(len(labels))], "label": labels}
        rows = datasets.Dataset.from_dict(columns, features=features)
        rows.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    return folder


def test_a_data_set_gives_its_splits_with_the_names_of_labels(saved, tmp_path):
    splits = open_hub(str(saved), None, tmp_path / "cache")
    assert set(splits) == {"train", "validation", "test"}
    assert [row.values["label"] for row in splits["train"].rows()] == ["pos", "neg", "pos"]
    (unlabelled,) = splits["test"].rows()
    assert unlabelled.values == {"sentence": "test 0", "label": None}


def test_labels_of_a_data_set_that_names_none_are_missing():
    features = datasets.Features({"label": datasets.ClassLabel(names=[])})
    rows = datasets.Dataset.from_dict({"label": [None, None]}, features=features)
    found = [row.values["label"] for row in table_of_dataset("a name", rows).rows()]
    assert found == [None, None]


def test_a_data_set_that_is_none_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"^task\.hub=.*empty cannot be loaded: ") as caught:
        open_hub(str(tmp_path / "empty"), None, tmp_path / "cache")
    assert "\n" not in str(caught.value)
