"""Tables that somebody has changed on purpose: one line, and nothing outside of them is read."""

from __future__ import annotations

import json
import os
import shutil
import struct

import datasets
import pyarrow as pa
import pytest

from tartan.data.table.open import open_table
from tartan.errors import UserError

TEXTS = ["aaaaaaaa", "bbbbbbbb", "cccccccc"]
WRONG = [(0, 8, 16, 60_000), (0, 8, 16, 2_000_000_000), (0, 1_500_000_000, 16, 24), (0, 9, 8, 24)]


def with_offsets(path, offsets):
    """Change where the texts of a file begin and end, which Arrow stores as 32-bit numbers."""
    content, written = path.read_bytes(), struct.pack("<4i", 0, 8, 16, 24)
    assert content.count(written) == 1
    path.write_bytes(content.replace(written, struct.pack("<4i", *offsets)))


def read(path):
    return [row.values for row in open_table(path).rows()]


@pytest.mark.parametrize("offsets", WRONG)
@pytest.mark.parametrize("stream", [False, True])
def test_positions_outside_of_an_arrow_file_are_one_line(offsets, stream, tmp_path):
    path, table = tmp_path / "a.arrow", pa.table({"text": TEXTS})
    kind = pa.ipc.new_stream if stream else pa.ipc.new_file
    with kind(str(path), table.schema) as file:
        file.write_table(table)
    with_offsets(path, offsets)
    with pytest.raises(UserError, match=r"cannot be read after row 0") as caught:
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


def test_a_saved_data_set_whose_labels_were_renamed_is_another_table(saved):
    before = open_table(saved).fingerprint
    assert [row["label"] for row in read(saved)] == ["no", "yes", None]
    change(saved / "dataset_info.json", "features.label.names", ["yes", "no"])
    assert open_table(saved).fingerprint != before
    assert [row["label"] for row in read(saved)] == ["yes", "no", None]


@pytest.mark.parametrize("offsets", WRONG)
def test_positions_outside_of_a_saved_data_set_are_one_line(offsets, saved):
    with_offsets(next(saved.glob("*.arrow")), offsets)
    with pytest.raises(UserError):
        read(saved)


FEATURE = "features.label"
NAMES = "has to list the names"
FILE = {"_type": "ClassLabel", "names_file": "/etc/hostname"}


@pytest.mark.parametrize(
    ("file", "entry", "value", "said"),
    [
        ("state.json", "_data_files", [{"filename": "../o.arrow"}], r"'\.\./o\.arrow' is outside"),
        ("state.json", "_data_files", [{"filename": "/etc/hostname"}], "is outside of it"),
        ("state.json", "_data_files", [{"filename": "link.arrow"}], "'link.arrow' is outside"),
        ("state.json", "_data_files", [{"filename": "pipe.arrow"}], "pipe.arrow is not a file"),
        ("state.json", "_data_files", 3, "cannot be read as a data set"),
        ("dataset_info.json", "features", [], "cannot be read as a data set"),
        ("dataset_info.json", f"{FEATURE}.names", ["no"], "'label' has no label 1"),
        ("dataset_info.json", "features.more", [{"a": FILE}], NAMES),
        ("dataset_info.json", FEATURE, {"_type": "ClassLabel", "num_classes": 20_000_000}, NAMES),
        ("dataset_info.json", FEATURE, FILE, NAMES),
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


@pytest.mark.parametrize("content", ["{", "[" * 100_000])
def test_a_description_that_is_none_is_one_line(content, saved):
    (saved / "state.json").write_text(content)
    with pytest.raises(UserError, match="cannot be read as a data set"):
        read(saved)


@pytest.mark.parametrize("file", ["state.json", "dataset_info.json"])
def test_a_description_that_is_a_link_elsewhere_is_not_read(file, saved, tmp_path):
    (saved / file).rename(tmp_path / file)
    (saved / file).symlink_to(tmp_path / file)
    with pytest.raises(UserError, match=rf"'{file}' is outside"):
        read(saved)
