"""What commands share: flags anywhere, one line for what is wrong, quiet ends."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import re
import signal
import subprocess
import sys

import pytest
import yaml
from hydra._internal.utils import get_args_parser

from tartan.runs.command_line import (
    hydra_command,
    message_of,
    quiet_libraries,
    run_child,
    run_command_line,
)
from tests.conftest import ROOT
from tests.in_process import config_of


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch):
    """Put back what `run_command_line` and `quiet_libraries` set for their process."""
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setenv("TARTAN_ONE_LINE_ERRORS", "1")
    monkeypatch.delenv("TARTAN_ONE_LINE_ERRORS")
    checked = getattr(argparse.ArgumentParser, "_check_help", lambda *_: None)
    monkeypatch.setattr(argparse.ArgumentParser, "_check_help", checked, raising=False)
    records = logging.getLogRecordFactory()
    yield
    logging.setLogRecordFactory(records)


@pytest.mark.parametrize(
    "override",
    [
        "task.max_lenght=8", "encodr=minilm", "encoder=minlm", "seed=[1,",
        "+experiment=acl_arc_mta", "task.train=it's.csv", "task.train=[a.csv,it's.csv]",
        "task.train=labels (1).csv",
    ],
)  # fmt: skip
def test_a_wrong_option_is_explained_in_one_line(override):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        config_of([override])
    line = message_of(caught.value)
    assert line is not None
    assert len(line.splitlines()) == 1
    assert re.search(r"lenght|encodr|minlm|mta|seed|csv", line)
    assert ".csv" not in line.replace(override, "")  # nor is another file's name suggested


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-m", "seed=0,1", "encoder=minlm"], "encoder/minlm"),
        (["hydra.searchpath=[file://nowhere]"], "nowhere"),
        (["hydra.run.dir={folder}/file/run"], "file/run: Not a directory"),
    ],
)
def test_the_command_exits_with_one_line(run_cli, arguments, said, tmp_path):
    (tmp_path / "file").write_text("")
    finished = run_cli(*(one.replace("{folder}", str(tmp_path)) for one in arguments), timeout=60)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert not (tmp_path / "runs").exists()


def test_other_errors_stay_and_those_of_files_are_one_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "seed=4", "weighting=meta"])

    def fail(error):
        raise error

    with pytest.raises(ValueError, match="something else"):
        run_command_line(lambda: fail(ValueError("something else")))
    unwritable = OSError(errno.EROFS, os.strerror(errno.EROFS), "runs/a/.hydra")
    for main, said in (
        (lambda: fail(unwritable), "error: runs/a/.hydra: Read-only file system\n"),
        (lambda: yaml.safe_load("a: [1,\n  b: }\n"), "error: while parsing a flow"),
    ):
        with pytest.raises(SystemExit, match="1"):
            run_command_line(main)
        assert capsys.readouterr().err.startswith(said)


def test_a_file_error_without_a_number_is_said(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["predict", "model=m", "input=i", "output=o"])

    @hydra_command("predict")
    def main(config):
        raise OSError("Not a gzipped file")

    with pytest.raises(SystemExit, match="1"):
        run_command_line(main)
    assert capsys.readouterr().err == "error: Not a gzipped file\n"


def arguments_of(line, monkeypatch):
    """What Hydra gets of a command line."""
    monkeypatch.setattr(sys, "argv", ["run", *line.split()])
    seen = []
    run_command_line(lambda: seen.extend(sys.argv[1:]))
    return seen


@pytest.mark.parametrize(
    ("line", "ordered"),
    [
        ("a=1 -m seed=0,1", "-m a=1 seed=0,1"),
        ("a=1 --config-dir mine ~c -m b=2", "--config-dir mine -m a=1 ~c b=2"),
        ("a=1 --cfg job b=2 --resolve", "--cfg job --resolve a=1 b=2"),
        ("+debug=fast +experiment=b seed=1", "+experiment=b seed=1 +debug=fast"),
    ],
)
def test_flags_come_first_and_debug_last(line, ordered, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert arguments_of(line, monkeypatch) == ordered.split()


def test_the_folder_conf_is_found_by_itself(monkeypatch, tmp_path):
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    assert arguments_of("a=1", monkeypatch) == ["--config-dir", "conf", "a=1"]
    assert arguments_of("--config-dir x a=1", monkeypatch) == ["--config-dir", "x", "a=1"]
    monkeypatch.chdir(ROOT)  # where it is the shipped one
    assert arguments_of("a=1", monkeypatch) == ["a=1"]


@pytest.mark.parametrize("command", ["src.run", "src.compare"])
def test_help_into_a_closed_pipe_ends_quietly(command):
    read, write = os.pipe()
    os.close(read)
    arguments = [sys.executable, "-m", command, "--help"]
    done = subprocess.run(
        arguments, stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_warning_that_names_a_strangers_file_does_not_command_the_terminal(caplog):
    quiet_libraries()
    logging.getLogger("tartan").warning("left out: %s", "\x1b]0;owned\x07")
    assert caplog.messages == ["left out: \\x1b]0;owned\\x07"]


SLOW = """
import pathlib, signal, sys, time
def stop(*_):
    time.sleep(1)
    pathlib.Path(sys.argv[1]).write_text('checkpoint')
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
print('ready', flush=True)
time.sleep(60)
"""
PARENT = """
import sys
from tartan.runs.command_line import run_child
sys.exit(run_child([sys.executable, *sys.argv[1:]]))
"""


def test_an_interrupted_child_finishes_what_it_does(tmp_path):
    """Ctrl-C goes to all processes of the terminal's group; the child needs a second to end."""
    script, written = tmp_path / "slow.py", tmp_path / "written"
    script.write_text(SLOW)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(script), str(written)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ready\n"
    os.killpg(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=60)
    assert written.read_text() == "checkpoint"
    assert (parent.returncode, errors) == (128 + signal.SIGINT, "")
    assert run_child([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) == 137


def test_hydra_parses_where_python_checks_help_texts_at_once(monkeypatch):
    """As Python 3.14 does, which finds no `%` in Hydra's object."""
    add = argparse.ArgumentParser.add_argument

    def add_checked(self, *names, **options):
        self._check_help(added := add(self, *names, **options))
        return added

    monkeypatch.setattr(argparse.ArgumentParser, "add_argument", add_checked)
    monkeypatch.setattr(
        argparse.ArgumentParser, "_check_help", lambda _, action: "%" in action.help
    )
    with pytest.raises(TypeError):
        get_args_parser()
    run_command_line(get_args_parser)
