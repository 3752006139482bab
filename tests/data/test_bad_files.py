"""Files that no reader should take for good: one clear line each, the same in training and use."""

from __future__ import annotations

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartan.data.file_task import FileTask
from tartan.data.table.lines import LONGEST_ROW
from tartan.errors import UserError
from tests.predict.conftest import classifier, predict

__all__ = ["classifier", "predict"]

HEAD = b"text,label\n"
ROWS = HEAD + b"".join(b"words %d,%s\n" % (i, b"AB"[i % 2 : i % 2 + 1]) for i in range(2000))
LINE = b'{"text": "a", "label": "A"}\n'
LINES = LINE + b'{"text": "b", "label": "B"}\n'


def parquet(**columns) -> bytes:
    sink = io.BytesIO()
    options = {"compression": None, "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def arrow(**columns) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def not_utf8() -> bytes:
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(pa.array([0, 1, 2], pa.int32()).buffers()[1]),
                         pa.py_buffer(b"a\xff")],
    )  # fmt: skip
    return parquet(text=texts, label=["A", "B"])


GOOD = parquet(text=["a", "b"] * 500, label=["A", "B"] * 500)
LONG_LINES = (b"word " * 999 + b"\n") * (LONGEST_ROW // 4990)
FLIPPED = GOOD.replace(b"\1\0\0\0a\1\0\0\0b", b"\1\0\0\0c\1\0\0\0b", 1)
FILES = [
    ("torn.csv.gz", gzip.compress(ROWS)[:2000], r"torn\.csv\.gz cannot be read: .* \(line \d+\)"),
    ("crc.csv.gz", gzip.compress(ROWS)[:-8] + bytes(8), r"cannot be read: CRC check failed"),
    ("none.csv.gz", ROWS, "cannot be read: Not a gzipped file"),
    ("torn.csv.zst", pa.compress(ROWS, "zstd", asbytes=True)[:500], "torn.csv.zst cannot be read"),
    ("none.csv.zst", ROWS, "none.csv.zst cannot be read"),
    ("excel.csv", b"PK\x03\x04" + ROWS, "no text but an archive"),
    ("gzip.csv", gzip.compress(ROWS), "gzip.csv, line 1: no text but gzip; .* end in .gz$"),
    ("gzip.jsonl", gzip.compress(LINES), "gzip.jsonl, line 1: no text but gzip"),
    ("gzip.json", gzip.compress(LINES), "gzip.json, line 1: no text but gzip"),
    ("zstd.csv", pa.compress(ROWS, "zstd", asbytes=True), "no text but zstd; .* end in .zst$"),
    ("parquet.csv", GOOD, "no text but Parquet; let the file's name end in .parquet$"),
    ("utf16.csv", ROWS.decode().encode("utf-16"), "line 1: not UTF-8 but UTF-16"),
    ("utf16.jsonl", LINES.decode().encode("utf-16"), "line 1: not UTF-8 but UTF-16"),
    ("utf16.json", b"\xff\xfe[\0", "not UTF-8 but UTF-16"),
    ("utf16le.csv", ROWS.decode().encode("utf-16-le"), "line 1: holds a null character"),
    ("latin.csv", HEAD + b"a,A\ncaf\xe9,B\n", "line 3: not UTF-8"),
    ("latin.jsonl", LINE + b'{"text": "caf\xe9"}\n', "line 2: not UTF-8"),
    ("latin.json", b'[{"text": "caf\xe9", "label": "A"}]', "not UTF-8"),
    ("null.csv", HEAD + b"a,A\nb\0c,B\n", "line 3: holds a null character"),
    ("null.jsonl", LINES + b"\0\0\0\0", "line 3: holds a null character"),
    ("twice.csv", b"text,label,text\na,A,b\n", "its header names the column 'text' twice"),
    ("twice.jsonl", LINES + b'{"text": "a", "text": "b"}\n', "line 3: names the field 'text'"),
    ("short.csv", HEAD + b"a,A\nb\nc,A\n", "line 3: 1 field, but the header has 2"),
    ("long.csv", HEAD + b"a,A\nb, c,B\n", "line 3: 3 fields, but the header has 2"),
    ("joined.csv", HEAD + b"a,A\nb,B\n" + HEAD + b"c,A\nd,B\n", "line 4: repeats the header"),
    ("break.csv", HEAD + b'"a\nb",A\nc\nd,B\n', "line 4: 1 field, but"),
    ("open.csv", HEAD + b'a,A\n"b,B\nc,A\n', "line 3: a double quote that opens in this row is"),
    ("stray.csv", HEAD + b'a,A\n"b" c,B\n', "line 3: a double quote inside a quoted field"),
    ("empty.csv", b"", "empty.csv (holds no examples|is empty)"),
    ("huge.csv", HEAD + b"a,A\n" + b"b" * 50_000_000 + b",B\n", "line 3: longer than 16,777"),
    ("huge_quoted.csv", HEAD + b'a,A\n"' + LONG_LINES, "line 3: a row of more"),
    ("huge.jsonl", LINE + b'{"text": "' + b"b" * 50_000_000 + b'"}', "line 2: longer than 16,777"),
    ("huge.json", b"[" + LINE + b', {"text": "' + b"b" * 40_000_000, "row 2: longer than 16,777"),
    ("torn.jsonl", LINES + b'{"text": "c", "la', r"line 3: not JSON \(Unterm.*column"),
    ("torn.json", b"[" + LINE + b', {"text": ', "row 2: not JSON"),
    ("comma.json", b"[" + LINE + LINE + b"]", "row 2: not JSON"),
    ("more.json", b"[" + LINE + b"] [", "something follows the list"),
    ("deep.jsonl", LINE + b'{"text": ' + b"[" * 200_000, "line 2: .*nested too deeply"),
    ("digits.jsonl", LINE + b'{"n": ' + b"1" * 5000 + b"}", "line 2: .*too many digits"),
    ("list.jsonl", LINE + b"[1, 2]\n", "line 2: expected an object"),
    ("nested.jsonl", LINE + b'{"text": ["b"], "label": "B"}', "line 2: .*a string, not list"),
    ("number.jsonl", LINE + b'{"text": 3, "label": "B"}', "line 2: .*a string, not int"),
    ("lacks.jsonl", LINE + b'{"label": "B"}', "line 2: the field 'text' is missing"),
    ("null_text.jsonl", LINE + b'{"text": null, "label": "B"}', "line 2: .*a string, not null"),
    ("half.jsonl", LINE + b'{"text": "\\udc00", "label": "B"}', "line 2: .*surrogate pair"),
    ("none.parquet", b"PAR1 and more", "cannot be read"),
    ("torn.parquet", GOOD[: len(GOOD) // 2], "cannot be read"),
    ("flipped.parquet", FLIPPED, r"cannot be read: .*CRC.*\(after row 0\)"),
    ("nested.parquet", parquet(text=[["a"], ["b"]], label=["A", "B"]), "row 1: .*string, not L"),
    ("null.parquet", parquet(text=["a", None], label=["A", "B"]), "row 2: .*'text' is empty"),
    ("latin.parquet", not_utf8(), "rows 1 to 2: column 'text' is not UTF-8"),
    ("torn.arrow", arrow(text=["a"] * 9, label=["A"] * 9)[:300], "cannot be read"),
    ("none.arrow", b"nothing", "cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), FILES, ids=[name for name, *_ in FILES])
def test_it_is_the_same_clear_line_in_training_and_prediction(
    name, content, said, tmp_path, predict
):
    path = tmp_path / name
    path.write_bytes(content)
    found = []
    with pytest.raises(UserError, match=said) as caught:
        FileTask("own", "macro_f1", 8, train=str(path), text="text", label="label").load()
    found.append(str(caught.value))
    kind = {"csv": "csv", "parquet": "parquet", "arrow": "parquet"}.get(name.split(".")[1], "jsonl")
    with pytest.raises(UserError, match=said) as caught:
        predict(path, tmp_path / f"out.{kind}", text="text")
    found.append(str(caught.value))
    assert all("\n" not in message and name in message for message in found)
    assert not (tmp_path / f"out.{kind}").exists()
    if name != "empty.csv":  # what it is for, it is told
        assert found[0] == found[1]


def test_the_longest_row_that_may_be_is_read(tmp_path):
    text = "a" * (LONGEST_ROW - 100)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}) + "\n")
    (tmp_path / "a.csv").write_text(f"text\n{text}\n")
    (tmp_path / "a.json").write_text(json.dumps([{"text": text}], indent=1))
    from tartan.data.table.open import open_table

    for name in ("a.jsonl", "a.csv", "a.json"):
        assert [row.values["text"] for row in open_table(tmp_path / name).rows()] == [text]
