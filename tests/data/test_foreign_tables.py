"""Tables that somebody has changed on purpose: one line, within the process and the memory."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import struct
from itertools import chain

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tartan.data.table.arrow
import tartan.data.table.base
from tartan.data.table.open import open_table
from tartan.errors import UserError

TEXTS = ["aaaaaaaa", "bbbbbbbb", "cccccccc"]


def with_offsets(path, offsets):
    """Change where the texts of a file begin and end, which Arrow stores as 32-bit numbers."""
    content, written = path.read_bytes(), struct.pack("<4i", 0, 8, 16, 24)
    assert content.count(written) == 1
    path.write_bytes(content.replace(written, struct.pack("<4i", *offsets)))


def read(path):
    return [row.values for row in open_table(path).rows()]


WRONG = [(0, 8, 16, 60_000), (0, 8, 16, 2_000_000_000), (0, 1_500_000_000, 16, 24), (0, 9, 8, 24)]


@pytest.mark.parametrize("offsets", WRONG)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_positions_outside_of_an_arrow_file_are_one_line(offsets, stream, packed, tmp_path):
    path, table = tmp_path / "a.arrow", pa.table({"text": TEXTS})
    kind = pa.ipc.new_stream if stream else pa.ipc.new_file
    with kind(str(path), table.schema) as file:
        file.write_table(table)
    with_offsets(path, offsets)
    if packed:
        path = tmp_path / "a.arrow.gz"
        path.write_bytes(gzip.compress((tmp_path / "a.arrow").read_bytes()))
    with pytest.raises(UserError, match=r"rows 1 to 3: column 'text' is damaged") as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.fixture
def saved(tmp_path):
    """A folder that `save_to_disk` wrote."""
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    columns = {"text": TEXTS, "label": [0, 1, -1]}
    datasets.Dataset.from_dict(columns, features).save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def change(path, entry, value):
    content = json.loads(path.read_text())
    *above, last = entry.split(".")
    node = content
    for key in above:
        node = node[key]
    node[last] = value
    path.write_text(json.dumps(content))


def test_a_saved_data_set_is_read(saved):
    assert [row["label"] for row in read(saved)] == ["no", "yes", None]


def test_a_saved_data_set_whose_labels_were_renamed_is_another_table(saved):
    before = open_table(saved).fingerprint
    change(saved / "dataset_info.json", "features.label.names", ["yes", "no"])
    assert open_table(saved).fingerprint != before
    assert [row["label"] for row in read(saved)] == ["yes", "no", None]


@pytest.mark.parametrize("offsets", WRONG)
def test_positions_outside_of_a_saved_data_set_are_one_line(offsets, saved):
    with_offsets(next(saved.glob("*.arrow")), offsets)
    with pytest.raises(UserError):
        read(saved)
    with pytest.raises(UserError):
        _ = open_table(saved).fingerprint


@pytest.mark.parametrize(
    ("file", "entry", "value", "said"),
    [
        ("state.json", "_data_files", [{"filename": "../o.arrow"}], r"'\.\./o\.arrow' is outside"),
        ("state.json", "_data_files", [{"filename": "/etc/hostname"}], "is outside of it"),
        ("state.json", "_data_files", [{"filename": "link.arrow"}], "'link.arrow' is outside"),
        ("state.json", "_data_files", [{"filename": "none.arrow"}], "none.arrow does not exist"),
        (
            "state.json",
            "_data_files",
            [{"filename": "pipe.arrow"}],
            "pipe.arrow is no regular file",
        ),
        ("state.json", "_data_files", 3, "cannot be read as a data set"),
        ("dataset_info.json", "features", [], "cannot be read as a data set"),
        ("dataset_info.json", "features.label.names", ["no"], r"row 2: .*'label' has no label 1"),
        ("dataset_info.json", "features.label.names", None, "has to list the names"),
        (
            "dataset_info.json",
            "features.more",
            [{"a": {"_type": "ClassLabel", "names_file": "/etc/hostname"}}],
            "has to list the names",
        ),
        (
            "dataset_info.json",
            "features.label",
            {"_type": "ClassLabel", "num_classes": 20_000_000},
            "has to list the names",
        ),
        (
            "dataset_info.json",
            "features.label",
            {"_type": "ClassLabel", "names_file": "/etc/hostname"},
            "has to list the names",
        ),
    ],
)
def test_a_changed_description_of_a_data_set_is_one_line(file, entry, value, said, saved):
    shutil.copy(next(saved.glob("*.arrow")), saved.parent / "o.arrow")
    os.mkfifo(saved / "pipe.arrow")
    (saved / "link.arrow").symlink_to("../o.arrow")
    change(saved / file, entry, value)
    with pytest.raises(UserError, match=said) as caught:
        read(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["{", "[]", "", "[" * 100_000])
@pytest.mark.parametrize("file", ["state.json", "dataset_info.json"])
def test_a_description_that_is_none_is_one_line(content, file, saved):
    (saved / file).write_text(content)
    with pytest.raises(UserError, match="cannot be read as a data set"):
        read(saved)


@pytest.mark.parametrize("kind", ["parquet", "parquet, no schema of Arrow", "arrow"])
def test_a_long_text_that_is_stored_once_for_many_rows_is_read_a_few_rows_at_a_time(
    kind, tmp_path, monkeypatch
):
    monkeypatch.setattr(tartan.data.table.base, "CHUNK_CHARACTERS", 10_000)
    indices = pa.array([0, None, 1] * 100, pa.int32())
    text = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 4000, "y"]))
    table = pa.table({"text": text, "number": range(300)})
    path = tmp_path / f"a.{kind.partition(',')[0]}"
    if kind == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    else:
        pq.write_table(table, path, store_schema="," not in kind)
    chunks = list(open_table(path).chunks())
    assert [row.values["number"] for chunk in chunks for row in chunk.rows] == list(range(300))
    texts = [[row.values["text"] for row in chunk.rows] for chunk in chunks]
    assert list(chain.from_iterable(texts)) == ["x" * 4000, None, "y"] * 100
    assert max(sum(len(text or "") for text in part) for part in texts) < 14_100
    assert [row.number for chunk in chunks for row in chunk.rows] == list(range(1, 301))
    as_strings = pa.string() if "," in kind else table.schema.field("text").type
    assert {chunk.columns.schema.field("text").type for chunk in chunks} == {as_strings}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_packed_file_that_would_fill_the_memory_is_one_line(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(tartan.data.table.arrow, "_LARGEST_UNPACKED", 5000)
    path = tmp_path / f"a.{kind}.gz"
    path.write_bytes(gzip.compress(b"\0" * 5001))
    with pytest.raises(UserError, match=rf"a\.{kind}\.gz takes more than .* unpack it first"):
        read(path)


def test_a_repeated_name_among_very_many_is_found(tmp_path):
    fields = ",".join(f'"a{i}": 0' for i in range(300_000))
    (tmp_path / "a.jsonl").write_text(f'{{{fields}, "a299999": 0}}\n')
    with pytest.raises(UserError, match="names the field 'a299999' twice"):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("file", ["state.json", "dataset_info.json"])
def test_a_description_that_is_a_link_elsewhere_is_not_read(file, saved, tmp_path):
    (saved / file).rename(tmp_path / file)
    (saved / file).symlink_to(tmp_path / file)
    with pytest.raises(UserError, match=rf"{file} is a link to a file elsewhere"):
        read(saved)


def test_a_name_of_a_column_that_is_not_utf8_is_one_line(tmp_path):
    table = pa.table({"caf\u00e9": TEXTS})
    with pa.ipc.new_stream(str(tmp_path / "a.arrow"), table.schema) as file:
        file.write_table(table)
    content = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "a.arrow").write_bytes(content.replace("caf\u00e9".encode(), b"caf\xff\xff"))
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "a.arrow")
