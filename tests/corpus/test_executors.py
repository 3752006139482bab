"""The same corpus by every executor, and what each says when it cannot."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
from pathlib import Path

import dill
import pytest
from datatrove.pipeline.base import PipelineStep
from hydra import compose, initialize_config_dir

from tartan.corpus.build import LocalTasks, build_corpus
from tartan.corpus.settings import options_of
from tartan.data.corpus import read_manifest
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.corpus.made_up import built, contents, write_articles, write_shard

pytestmark = pytest.mark.slow

SBATCH = """#!/bin/bash
# notes the script and what it was given; jobs are numbered from 100
number=$((100 + $(ls {notes} | wc -l)))
for script in "$@"; do :; done
{{ echo "#GIVEN $*"; cat "$script"; }} > {notes}/$number
echo "Submitted batch job $number"
"""


@pytest.fixture
def articles(tmp_path):
    return write_articles(tmp_path / "articles")


def composed(articles, output, *options):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        given = [f"sources={articles}", f"output={output}", "decontaminate=null", *options]
        return options_of(compose("build_corpus", overrides=given))


def programs(folder, monkeypatch, **texts):
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def restored_handler():
    """Restore the signal handler that datatrove sets in a task of SLURM."""
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("restored_handler")
def test_slurm_is_given_an_array_for_each_step_after_the_one_before(
    articles, tmp_path, monkeypatch
):
    """The scripts that would be submitted; then their tasks, run here as SLURM would."""
    (notes := tmp_path / "notes").mkdir()
    (tmp_path / "bin").mkdir()
    programs(
        tmp_path / "bin",
        monkeypatch,
        sbatch=SBATCH.format(notes=notes),
        scontrol="#!/bin/bash\necho here",
        squeue=f"#!/bin/bash\necho $@ > {tmp_path}/asked; [ -e {tmp_path}/over ] || echo 106",
    )
    said = []
    chosen = ("executor=slurm", "executor.partition=cpu", "executor.tasks_per_job=2")
    assert build_corpus(composed(articles, tmp_path / "out", *chosen), said.append) is None
    # datatrove follows each array with a job that sums up its tasks' statistics
    assert said == [
        "sources: 3 tasks in job 100",
        "repeats: 1 tasks in job 102",
        "shards: 3 tasks in job 104",
        "manifest: 1 tasks in job 106",
    ]
    scripts = [path.read_text() for path in sorted(notes.iterdir())][::2]
    arrays = [re.search(r"array=(\S+)", script)[1] for script in scripts]
    assert arrays == ["0-1", "0-0", "0-1", "0-0"]
    assert "--dependency=afterok:104" in scripts[3]
    assert all("#SBATCH --partition=cpu" in script for script in scripts)
    # what the jobs get by --export=ALL
    assert os.environ["PATH"].startswith(str(Path(sys.executable).parent))
    assert os.environ["PYTHONPATH"].startswith(str(ROOT / "src"))
    with pytest.raises(UserError, match="jobs 106 are still in SLURM's queue"):
        build_corpus(composed(articles, tmp_path / "out"), print)
    assert "--jobs=100,102,104,106" in (tmp_path / "asked").read_text()
    (tmp_path / "over").touch()
    monkeypatch.setenv("SLURM_NODELIST", "here")
    for script in scripts:
        path = re.search(r"launch_pickled_pipeline (\S+)", script)[1]
        for task in range(int(re.search(r"array=0-(\d+)", script)[1]) + 1):
            monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(task))
            with open(path, "rb") as file:  # noqa: PTH123
                dill.load(file).run()
    corpus = build_corpus(composed(articles, tmp_path / "out"), said.append)
    assert "finished; comparing checksums" in said[-1]
    built(articles, tmp_path / "local")
    local = read_manifest(tmp_path / "local")
    assert (corpus.shards, corpus.counts) == (local.shards, local.counts)


@pytest.mark.skipif(not importlib.util.find_spec("ray"), reason="needs pip install -e '.[ray]'")
def test_ray_builds_the_same_corpus_and_says_what_is_wrong(articles, tmp_path):
    build_corpus(composed(articles, tmp_path / "local"), print)
    build_corpus(composed(articles, tmp_path / "ray", "executor=ray"), print)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    bad = write_shard(tmp_path / "bad" / "a.jsonl", [{"text": "a"}, b"{"])
    with pytest.raises(UserError, match=r"1 tasks of sources failed; .* says why"):
        build_corpus(composed(bad, tmp_path / "none", "executor=ray"), print)


class KillsItself(PipelineStep):
    """As a system without memory does."""

    type, name = "test", "kill"

    def run(self, data=None, rank=0, world_size=1):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_one_line_and_no_endless_wait(tmp_path):
    tasks = LocalTasks([KillsItself()], tasks=2, workers=2, logging_dir=str(tmp_path))
    with pytest.raises(UserError, match=r"a process was killed.*a lower executor\.workers"):
        tasks.run()
