"""Two million records by two processes, killed again and again, against an undisturbed build."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.synthetic_articles import FIELD, SyntheticArticles
from tests.corpus.made_up import contents
from tests.programs import PYTHONPATH

RECORDS = int(os.environ.get("RECORDS", "2000000"))
KILLS = int(os.environ.get("KILLS", "4"))
SHARDS = 8


def start(articles, output, workers):
    command = [
        sys.executable, "-m", "src.build_corpus", f"sources={articles}", f"output={output}",
        f"field_of_study=[{FIELD}]", "decontaminate=null", f"executor.workers={workers}",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    return subprocess.Popen(command, cwd=output.parent, env=environment)


def made(output):
    """Number of tasks that are finished."""
    return len(list(output.glob("building/tasks/*/completions/*")))


@pytest.mark.manual
def test_a_corpus_that_is_killed_and_gone_on_with_is_that_of_an_undisturbed_build(tmp_path):
    words = ["".join(letters) for letters in itertools.product("bdfgklmnprst", "aeiou", "lmnrs")]
    began = time.monotonic()
    # an abstract each, of which 0.7 are of the field and 0.94 of these no repeats
    articles = SyntheticArticles(words, round(RECORDS * 0.7 * 0.94), SHARDS, paragraphs=1)
    articles.write(tmp_path / "in")
    print(f"{RECORDS:,} records made in {time.monotonic() - began:.0f} s", flush=True)
    disturbed, rng = tmp_path / "disturbed", random.Random(0)
    for kill in range(KILLS):
        process = start(tmp_path / "in", disturbed, workers=2)
        until = made(disturbed) + rng.randint(1, SHARDS // 2)
        while made(disturbed) < until and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.random())
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        if (disturbed / "manifest.json").exists():
            assert kill, "it ended before it was killed once: RECORDS is too small"
            break
        print(f"kill {kill + 1}: {made(disturbed)} tasks done", flush=True)
    for output, workers in ((disturbed, 2), (tmp_path / "whole", 1)):
        began = time.monotonic()
        assert start(tmp_path / "in", output, workers).wait() == 0
        print(f"{output.name}: {time.monotonic() - began:.0f} s", flush=True)
    assert contents(disturbed) == contents(tmp_path / "whole")
