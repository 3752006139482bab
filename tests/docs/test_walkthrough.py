"""README and the tutorial, followed word by word in a fresh clone: `make walkthrough`.

The only liberties: the environment that runs the tests stands for the one that `make` would set up,
`make test` is not run inside of the tests, and placeholders are filled in as the pages say.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.test_pages import blocks

AS_IT_IS = """\
set -euo pipefail
make() {
    test -e .venv || ln -s "$ENVIRONMENT" .venv
    case "$1" in test) return;; esac
    command make -o .venv/.ready "$@"
}
"""
PLACEHOLDERS = {
    "REPOSITORY": str(ROOT),
}
"""What the pages call by a name, and what that is."""
WORDS = {"uses": "apple", "background": "river", "extends": "stone"}


@pytest.fixture
def own_files(tmp_path) -> Path:
    """The reader's own files, by the names that the pages have for them."""
    folder = tmp_path / "own"
    (folder / "texts").mkdir(parents=True)
    fillers = ["red", "old", "cold", "near", "far", "big", "odd", "wet"]
    rows = [
        (f"the {word} is {filler} and {other}", label)
        for label, word in WORDS.items()
        for filler in fillers
        for other in fillers[:4]
    ]
    for name, part in (("labels", rows), ("new", rows[::9]), ("texts", rows[::7])):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"] if name == "labels" else ["text"])
            writer.writerows(part if name == "labels" else [row[:1] for row in part])
    (folder / "texts" / "a.txt").write_text(
        "".join(f"a {w} that is {f}\n" for w in WORDS.values() for f in fillers), encoding="utf-8"
    )
    return folder


@pytest.mark.manual
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_a_page_works_word_by_word(page, own_files, tmp_path):
    script = [AS_IT_IS]
    for number, block in enumerate(blocks(ROOT / page, "bash")):
        for name, value in PLACEHOLDERS.items():
            block = block.replace(name, value)
        script.append(block)
        if number == 0:
            script.append(f"cp -r {own_files}/. .\n")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "ENVIRONMENT": sys.prefix}, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    with (tmp_path / "tartan" / "predictions.csv").open(newline="") as file:
        predicted = list(csv.DictReader(file))
    assert {row["predicted_label"] for row in predicted} <= set(WORDS)
    asked = re.search(r"input=(\S+)", "\n".join(script))
    assert asked is not None
    with (own_files / asked[1]).open(newline="") as file:
        assert len(predicted) == len(list(csv.DictReader(file)))
