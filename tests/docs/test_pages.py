"""The commands that the pages show are ones that the program understands."""

from __future__ import annotations

import re
import shlex

import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from tests.conftest import ROOT
from tests.in_process import config_of

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
BLOCK = re.compile(r"^```bash\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def commands():
    """Page and options of each `python -m src.run` in a block of commands."""
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                options = [word for word in words[3:] if "=" in word and word[0] != "-"]
                # what a shell fills in, and where the check writes, are no options of a run
                options = [word for word in options if not word.startswith("output=")]
                if "${" in line:
                    continue
                if words[:3] in (["python", "-m", "src.run"], ["python", "-m", "src.check"]):
                    yield pytest.param(options, id=f"{page.stem}: {' '.join(options)}"[:120])


def test_there_are_commands():
    assert len(list(commands())) > 10


@pytest.mark.parametrize("options", list(commands()))
def test_a_command_that_a_page_shows_composes(options):
    parsed = OverridesParser.create().parse_overrides(options)
    (jobs,) = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    for job in jobs:
        # what belongs to Hydra itself is not in a composed config
        assert "task" in config_of([option for option in job if not option.startswith("hydra.")])
