"""The options' reference says what every option means; `make docs` makes all of it."""

from __future__ import annotations

import shutil

import pytest

from docs.builder.config_pages import _group_page, _presets_page
from docs.builder.options import UndescribedError
from tests.in_process import CONF


def test_every_experiment_is_listed_with_what_it_picks():
    page = _presets_page(CONF, "experiment")
    for name in (path.stem for path in (CONF / "experiment").glob("*.yaml")):
        assert f"| `{name}`" in page
    (row,) = [line for line in page.splitlines() if "`digits_meta`" in line]
    assert "`method=meta_tartan`" in row
    assert "`micro_batch_size=512`" in row  # from the file that it builds on


def test_options_that_nobody_has_described_fail_and_are_named(tmp_path):
    conf = shutil.copytree(CONF, tmp_path / "conf")
    trainer = conf / "trainer" / "default.yaml"
    trainer.write_text(trainer.read_text() + "max_time: null # [text or null]\nbarebones: false\n")
    with pytest.raises(UndescribedError) as error:
        _group_page(conf, "trainer")
    # in the file itself, and in every one that builds on it
    for option in ("max_time", "barebones"):
        named = [
            line for line in str(error.value).splitlines() if f": {option} has no desc" in line
        ]
        assert {line.split(": ")[0] for line in named} == {
            str(path) for path in (conf / "trainer").glob("*.yaml")
        }
