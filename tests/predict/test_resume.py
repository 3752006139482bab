"""Whatever stops it, the same command goes on, and the file is that of an undisturbed one."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tartan.data.table
from tartan.errors import UserError
from tartan.files import process_lock
from tartan.predict.predict import Unfinished
from tests.programs import called_for_text, started

ROWS = 11


class KilledError(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(tartan.data.table, "CHUNK_ROWS", 4)


def write_input(folder: Path, kind: str, rows: int = ROWS, extra: str = "") -> Path:
    path = folder / f"in.{kind}"
    texts = [f"text {i}, {'word ' * (i % 7)}{extra}\nend" for i in range(rows)]
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts}), path, row_group_size=6)
        return path
    if "csv" in kind:
        content = "text\n" + "".join(f'"{text}"\n' for text in texts)
    else:
        content = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    path.write_bytes(gzip.compress(content.encode()) if kind.endswith("gz") else content.encode())
    return path


def files_beside(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir() if path.name.startswith("out"))


def unfinished_file(target: Path) -> Path:
    return target.with_name(f"{target.name}.unfinished")


def rows_gathered(target: Path) -> int:
    path = unfinished_file(target)
    return len(path.read_bytes().partition(b"\n")[2]) // 12 if path.exists() else 0


@pytest.mark.parametrize("kind", ["csv.gz", "jsonl", "parquet"])
def test_a_kill_at_any_moment_changes_nothing(predict, tmp_path, small_chunks, monkeypatch, kind):
    source = write_input(tmp_path, kind)
    predict(source, tmp_path / f"whole.{kind}")
    expected = (tmp_path / f"whole.{kind}").read_bytes()
    left = 0

    def dying(function):
        def call(*args, **kwargs):
            nonlocal left
            if left == 0:
                raise KilledError
            left -= 1
            return function(*args, **kwargs)

        return call

    # all that changes what is on the disk
    monkeypatch.setattr(os, "fsync", dying(os.fsync))
    for name in ("replace", "unlink"):
        monkeypatch.setattr(Path, name, dying(getattr(Path, name)))
    # the first process dies at its `moment`-th change, each later one a few further on
    for moment in range(40):
        target = tmp_path / f"out-{moment}.{kind}"
        deaths, left = 0, moment
        while True:
            try:
                done = predict(source, target)
            except KilledError:
                assert not target.exists() or target.read_bytes() == expected
                deaths, left = deaths + 1, moment + 5 * deaths + 1
                if (gathered := unfinished_file(target)).exists() and deaths == 1:
                    with gathered.open("ab") as file:  # what was being written
                        file.write(b"torn")
                continue
            except UserError as error:  # it died when all was done
                if "exists already" not in str(error):
                    raise
                break
            assert done.rows == ROWS
            break
        assert target.read_bytes() == expected
        assert not [name for name in files_beside(target) if name.startswith(f"{target.name}.")]
        if not deaths:
            return
    pytest.fail("it never came to its end undisturbed")


def test_a_real_kill_changes_nothing(classifier, predict, tmp_path):
    source = write_input(tmp_path, "csv", rows=9000)
    predict(source, tmp_path / "whole.csv")
    target = tmp_path / "out.csv"
    options = [f"model={classifier}", f"input={source}", f"output={target}", "device=cpu"]
    killed_at = []
    for least in (1, 3):
        process = started("src.predict", *options, cwd=tmp_path)
        end = time.monotonic() + 120
        while time.monotonic() < end and not process.is_over():
            if rows_gathered(target) >= 1024 * least:
                break
            time.sleep(0.001)
        process.kill()
        assert process.wait().returncode == -signal.SIGKILL
        killed_at.append(rows_gathered(target) // 1024)
        assert not target.exists()
    assert killed_at[0] < killed_at[1] < 9
    done = called_for_text("src.predict", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"9,000 rows, {1024 * killed_at[1]:,} of them before it was stopped" in done.stdout
    assert target.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert files_beside(target) == ["out.csv"]


@pytest.fixture
def begun(predict, tmp_path, small_chunks, monkeypatch):
    """A file of which one chunk is written."""

    def call(kind: str) -> tuple[Path, Path]:
        source, target = write_input(tmp_path, kind), tmp_path / f"out.{kind}"
        with monkeypatch.context() as patch:
            append = Unfinished.append

            def die_after(self, *args):
                append(self, *args)
                raise KilledError

            patch.setattr(Unfinished, "append", die_after)
            with pytest.raises(KilledError):
                predict(source, target)
        return source, target

    return call


def test_another_input_or_option_is_noticed(begun, predict, tmp_path):
    source, target = begun("parquet")
    with pytest.raises(UserError, match=r"was begun with another .* resume=false"):
        predict(source, target, batch_size=8)
    for change in ({"rows": 0}, {"extra": "other"}):
        write_input(tmp_path, "parquet", **change)
        with pytest.raises(UserError, match="was begun with another"):
            predict(source, target)
    predict(source, target, resume=False)
    predict(source, tmp_path / "again.parquet")
    assert target.read_bytes() == (tmp_path / "again.parquet").read_bytes()


def test_what_is_torn_never_reaches_the_output(begun, predict, tmp_path):
    source, target = begun("csv")
    predict(source, tmp_path / "whole.csv")
    content = unfinished_file(target).read_bytes()
    key = content.partition(b"\n")[0] + b"\n"
    zeros = key + bytes(len(content) - len(key))  # as a power cut may leave it
    for found, resumed in (
        (b"", 0), (key[:9], 0), (key, 0), (zeros, 0), (content[:-5], 0), (content + b"torn", 4),
    ):  # fmt: skip
        unfinished_file(target).write_bytes(found)
        assert predict(source, target).resumed == resumed
        assert target.read_bytes() == (tmp_path / "whole.csv").read_bytes()
        target.unlink()


def test_a_row_that_cannot_be_read_is_named_before_anything_is_predicted(predict, tmp_path):
    source, target = write_input(tmp_path, "jsonl"), tmp_path / "out.jsonl"
    source.write_text(source.read_text() + '{"text": 3}')
    with pytest.raises(UserError, match=r"line 12"):
        predict(source, target)
    assert files_beside(target) == []


def test_two_processes_do_not_write_one_file(predict, tmp_path):
    source, target = write_input(tmp_path, "csv"), tmp_path / "out.csv"
    with (
        process_lock(tmp_path / "out.csv.lock", ""),
        pytest.raises(UserError, match=r"another process is writing .*out\.csv"),
    ):
        predict(source, target)


def test_a_file_that_is_there_is_kept(predict, tmp_path):
    source, target = write_input(tmp_path, "csv"), tmp_path / "out.csv"
    target.write_text("mine")
    with pytest.raises(UserError, match=r"out\.csv exists already; .* overwrite=true"):
        predict(source, target)
    assert target.read_text() == "mine"
    predict(source, target, overwrite=True)
    assert target.read_text().startswith("text,predicted_label")
