"""Tables of every format and dialect: the same rows, or one line that names file and place."""

from __future__ import annotations

import csv
import gzip
import io
import json

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants

from tartan.data.corpus import load_corpus_from_hub
from tartan.data.table import open_hub, open_table
from tartan.errors import UserError

TEXTS = [
    "red apple", "  blanks ", 'she said "yes", and "no"', "two\nlines", "carriage\r\nreturn",
    "ünïcödé 日本語 🦊 \u2028 end", "tab\there", "\ufeffmark", "NaN", "null", "007", "a; b | c",
]  # fmt: skip
ROWS = [{"text": text, "label": "AB"[i % 2], "n": str(i)} for i, text in enumerate(TEXTS)]


def as_csv(rows, separator=",", end="\r\n", encoding="utf-8") -> bytes:
    content = io.StringIO(newline="")
    quoting = csv.QUOTE_MINIMAL if end == "\r\n" else csv.QUOTE_ALL
    writer = csv.writer(content, delimiter=separator, lineterminator=end, quoting=quoting)
    writer.writerows([list(rows[0]), *([row[name] for name in rows[0]] for row in rows)])
    return content.getvalue().encode(encoding)


def as_jsonl(rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_parquet(rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def zstd(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content, asbytes=True)


DIALECTS = {
    "commas.csv": as_csv,
    "excel.csv": lambda rows: as_csv(rows, ";", encoding="utf-8-sig"),
    "unix.csv.gz": lambda rows: gzip.compress(as_csv(rows, end="\n")),
    "tabs.tsv": lambda rows: as_csv(rows, "\t"),
    "lines.jsonl": as_jsonl,
    "marked.jsonl.zst": lambda rows: zstd(b"\xef\xbb\xbf" + as_jsonl(rows)),
    "list.json": lambda rows: json.dumps(rows, indent=2, ensure_ascii=False).encode(),
    "columns.parquet": as_parquet,
}


def table_of(folder, name, content, **options):
    (folder / name).write_bytes(content)
    return open_table(folder / name, **options)


def values_of(table):
    return [dict(row.values) for row in table.rows()]


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_gives_the_same_rows_as_often_as_asked(name, tmp_path):
    table = table_of(tmp_path, name, DIALECTS[name](ROWS))
    assert table.columns == ("text", "label", "n")
    assert values_of(table) == values_of(table) == ROWS


def test_rows_know_their_lines(tmp_path):
    table = table_of(tmp_path, "t.csv", b'text,label\n\n"a\nb",x\nc,y\n')
    assert [(row.number, row.place) for row in table.rows()] == [
        (3, f"{tmp_path}/t.csv, line 3"), (5, f"{tmp_path}/t.csv, line 5"),
    ]  # fmt: skip


def test_a_blank_before_a_quote_is_left_out(tmp_path):
    table = table_of(tmp_path, "t.csv", b',text, label\n0,"a, c", "b"\n')
    assert values_of(table) == [{"Unnamed: 0": "0", "text": "a, c", "label": "b"}]
    table = table_of(tmp_path, "t.tsv", b'text\t label\n"a\tc"\t "b"\n')
    assert values_of(table) == [{"text": "a\tc", "label": "b"}]
    table = table_of(tmp_path, "t.csv", b'text,label\n "a, c",b\n')
    assert values_of(table) == [{"text": "a, c", "label": "b"}]


HEAD, LINE = b"text,label\na,A\n", b'{"text": "a", "label": "A"}\n'
PACKED = gzip.compress(HEAD + b"".join(b"words %d,B\n" % i for i in range(20_000)))
SUMMED = io.BytesIO()
pq.write_table(pa.table({"text": ["a", "b"] * 500, "label": ["A", "B"] * 500}), SUMMED,
               compression=None, use_dictionary=False, write_page_checksum=True)  # fmt: skip
FLIPPED = SUMMED.getvalue().replace(b"\1\0\0\0a\1\0\0\0b", b"\1\0\0\0c\1\0\0\0b", 1)
MALFORMED = [
    ("t.csv", HEAD + b"c\n", "line 3: 1 fields, but the header has 2"),
    ("t.csv", HEAD + b'"x\ny",b\nc,d,e\n', "line 5: 3 fields, but the header has 2"),
    ("t.csv", HEAD + b'"c,d\ne,f\n', "line 3: .*quote"),
    ("t.csv", HEAD + b"c,d\n" * 20 + b'e, "f"\n', "line 23: a blank before a double"),
    ("t.csv", HEAD + b'c,\t"d"\n', "line 3: a blank before a double"),
    ("t.csv", HEAD + b"caf\xe9,d\n", "line 3: not UTF-8"),
    ("t.csv", HEAD + b"b,B\n\xef\xbb\xbf" + HEAD, "line 4: repeats the header"),
    ("t.csv", b"text,text\na,b\n", "names the column 'text' twice"),
    ("t.csv", HEAD.replace(b"\n", b"\r"), "new-line character"),
    ("t.doc", b"", "the name must end in .csv, .tsv, .jsonl"),
    ("t.json", b'[{"text": "a"}, 5]', "row 2: no mapping"),
    ("t.jsonl", LINE + b'  {"a" 2}\n', "line 2: not JSON"),
    ("t.jsonl", LINE + b"[1, 2]\n", "line 2: expected an object"),
    ("t.csv.gz", PACKED[: len(PACKED) // 2], r"unreadable after line \d+"),
    ("t.csv.zst", zstd(PACKED)[:500], "unreadable"),
    ("t.parquet", b"PAR1 and more", "cannot be read"),
    ("t.parquet", FLIPPED, "unreadable after row 0: .*CRC"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED)
def test_a_malformed_file_is_one_line_that_names_file_and_place(name, content, message, tmp_path):
    with pytest.raises(UserError, match=message) as caught:
        values_of(table_of(tmp_path, name, content))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


SWALLOWED = [
    b'label,text\ngood,one apple\nbad,"two river\ngood,three apple\nbad,four river"\ngood,five\n',
    b'text,label\none apple,good\n"two river,bad\nthree apple,good\nfour river",bad\n',
    b'id,text,label\n1,one,good\n2,"two,bad\n3,three,good\n4,four",good\n',
    b'text,label\n"one apple,good\ntwo river",bad\nthree apple,good\n',  # as a later row's label
    b'id,text\n1,one\n2,"two\n3,three"\n4,four\n',  # numbers of rows
    b'text,"label\none,good\ntwo,bad"\nthree,good\n',  # in the header
]


@pytest.mark.parametrize("content", SWALLOWED)
def test_rows_that_a_stray_quote_swallows_are_refused(content, tmp_path):
    with pytest.raises(UserError, match=r"t\.csv, line [2-4]: a row inside a quoted field"):
        values_of(table_of(tmp_path, "t.csv", content))
    unquoted = values_of(table_of(tmp_path, "t.csv", content, quoting="none"))
    assert len(unquoted) == content.count(b"\n") - 1


def test_line_breaks_and_separators_in_a_text_are_no_rows(tmp_path):
    letter = "Dear Sir,\nthank you for it\nUnits, 1\nYours"
    code = "x = [1,\n0, 1,\n]\ny = f(x), 1"
    rows = [{"text": f"{(letter, code)[i % 2]} {i}", "label": "12"[i % 2]} for i in range(9)]
    assert values_of(table_of(tmp_path, "t.csv", as_csv(rows))) == rows


def test_a_spreadsheet_is_read_as_text(tmp_path):
    rows = [{"text": "a", "label": 1}, {"text": None, "label": 2}]
    pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", index=False)
    expected = [{"text": "a", "label": "1"}, {"text": "", "label": "2"}]
    assert values_of(open_table(tmp_path / "t.xlsx")) == expected


def test_a_data_set_on_the_hub_gives_its_splits_with_the_names_of_labels(tmp_path):
    names = datasets.ClassLabel(names=["neg", "pos"])
    features = datasets.Features({"sentence": datasets.Value("string"), "label": names})
    (tmp_path / "reviews" / "data").mkdir(parents=True)
    for split, labels in (("train", [1, 0, 1]), ("validation", [0]), ("test", [-1])):
        columns = {"sentence": [f"{split} {i}" for i in range(len(labels))], "label": labels}
        path = tmp_path / "reviews" / "data" / f"{split}-00000-of-00001.parquet"
        datasets.Dataset.from_dict(columns, features=features).to_parquet(path)
    splits = open_hub(str(tmp_path / "reviews"), None, tmp_path / "cache")
    assert set(splits) == {"train", "validation", "test"}
    assert [row["label"] for row in values_of(splits["train"])] == ["pos", "neg", "pos"]
    assert values_of(splits["test"]) == [{"sentence": "test 0", "label": None}]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"^task\.hub=.*empty cannot be loaded: "):
        open_hub(str(tmp_path / "empty"), None, tmp_path / "cache")


def test_a_hub_that_does_not_answer_is_not_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", None)  # which would try again for 20 seconds
    loads = (
        lambda: open_hub("some/set", None, tmp_path),
        lambda: load_corpus_from_hub("some/set", None, "train", "text", tmp_path),
    )
    for load in loads:
        with pytest.raises(UserError, match="offline"):
            load()
