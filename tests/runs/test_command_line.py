"""A wrong command line ends in one line and exit code 1; the user's own errors are not hidden."""

from __future__ import annotations

import errno
import os
import re
import sys

import pytest
import yaml

from tartan.runs.command_line import message_of, run_command_line
from tests.in_process import CONF, config_of


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch):
    """Put back what `run_command_line` sets for its process, which is the tests' here."""
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setenv("TARTAN_ONE_LINE_ERRORS", "1")
    monkeypatch.delenv("TARTAN_ONE_LINE_ERRORS")


@pytest.mark.parametrize(
    "override",
    [
        "task.max_lenght=8",
        "encodr=minilm",
        "encoder=minlm",
        "weighting=null",
        "+experiment=acl_arc_mta",
        "seed",
        "seed=[1,",
        "task.text=Größe",
        "~nothing",
        "+seed=3",
    ],
)
def test_it_is_explained_in_one_line(override):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        config_of([override])
    line = message_of(caught.value)
    assert line is not None
    assert len(line.splitlines()) == 1
    assert re.search(r"lenght|encodr|minlm|string|mta|seed|Größe|nothing", line)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["encoder=minlm"], "encoder/minlm"),
        (["-m", "seed=0,1", "encoder=minlm"], "encoder/minlm"),
        (["seed=${oc.env:NOPE}"], "NOPE"),
        (["hydra.searchpath=[file://nowhere]"], "nowhere"),
        (["hydra.run.dir={folder}/file/run"], "file/run: Not a directory"),
        (["hydra.job.chdir=true"], "chdir"),
        (["--sed=3"], "--sed"),
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


def test_hydras_own_switch_shows_the_whole_traceback(run_cli, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    finished = run_cli("encoder=minlm", timeout=60)
    assert finished.returncode == 1
    assert "Traceback" in finished.stderr


def test_commands_that_a_command_starts_do_not_take_its_switch_for_the_users(run_cli, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run"])
    run_command_line(lambda: None)
    assert os.environ["HYDRA_FULL_ERROR"] == "1"
    finished = run_cli("encoder=minlm", timeout=60)
    assert len(finished.stderr.splitlines()) == 1


def test_a_programs_own_errors_stay(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "seed=4", "weighting=meta"])
    with pytest.raises(ValueError, match="something else"):
        run_command_line(lambda: (_ for _ in ()).throw(ValueError("something else")))


def test_a_disk_and_a_file_that_cannot_be_read_are_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run"])

    def unwritable():
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "runs/a/.hydra")

    for main, said in (
        (unwritable, "error: runs/a/.hydra: Read-only file system\n"),
        (lambda: yaml.safe_load("a: [1,\n  b: }\n"), "error: while parsing a flow"),
    ):
        with pytest.raises(SystemExit, match="1"):
            run_command_line(main)
        assert capsys.readouterr().err.startswith(said)


def test_a_group_without_a_default_is_chosen_with_and_without_the_plus(monkeypatch):
    given = ["-m", "experiment=acl_arc_mt,acl_arc_meta", "+debug=fast", "search=paper", "seed=1"]
    monkeypatch.setattr(sys, "argv", ["run", *given])
    seen = []
    run_command_line(lambda: seen.extend(sys.argv[1:]))
    assert seen == ["-m", f"+{given[1]}", "+debug=fast", "+search=paper", "seed=1"]


def test_help_offers_experiments_and_not_what_they_share(run_cli):
    shown = run_cli("--help", timeout=60).stdout
    launchers = sorted(path.stem for path in (CONF / "hydra" / "launcher").glob("*.yaml"))
    assert f"\nhydra/launcher: {', '.join(launchers)} (of sweeps, -m)\n" in shown
    (offered,) = [line for line in shown.splitlines() if line.startswith("experiment: ")]
    names = offered.removeprefix("experiment: ").split(", ")
    assert {"acl_arc_meta", "custom", "quickstart"} <= set(names)
    assert not {"paper", "paper_joint", "images", "docstrings", "minilm_pretrain"} & set(names)
