"""The options' reference: everything that the command line takes is in it, with what it means."""

from __future__ import annotations

import re
import shutil

import pytest
import yaml

from docs.builder.config_pages import OTHERS, PRESETS, config_pages
from docs.builder.options import UndescribedError, type_words
from tests.conftest import ROOT
from tests.in_process import CONF

pytestmark = pytest.mark.slow

NOT_OPTIONS = {"_target_", "defaults", "hydra"}


@pytest.fixture(scope="module")
def pages():
    return config_pages(CONF)


def rows(page):
    """Name, type, default and meaning of every option in the tables of a page."""
    cells = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in page.splitlines()]
    return {
        row[0].split("`")[1]: row[1:] for row in cells if len(row) == 4 and row[0].startswith("`")
    }


def keys(node, above=()):
    """Paths of all options in a file; an object that has none of its own is none."""
    for key, value in node.items():
        if key in NOT_OPTIONS:
            continue
        within = list(keys(value, (*above, key))) if isinstance(value, dict) else []
        if within or not (isinstance(value, dict) and "_target_" in value):
            yield (*above, key)
        yield from within


def files():
    for path in sorted(CONF.rglob("*.yaml")):
        group = path.parent.relative_to(CONF).as_posix().removeprefix(".")
        if group not in {*PRESETS, *OTHERS, "method"}:
            yield path, group


def test_every_option_of_every_file_is_described(pages):
    """One test, because every process that ran a part of it would make all pages first."""
    missing = []
    for path, group in files():
        program = "run" if path.stem == "config" else path.stem
        described = rows(pages[f"{group.replace('/', '.') or program}.md"])
        content = yaml.safe_load(path.read_text()) or {}
        for key in keys(content.get(group, content) if group else content):
            # a mapping is described as a whole, or all that is in it
            parts = [".".join(key[:count]) for count in range(1, len(key) + 1)]
            inside = any(name.startswith(f"{parts[-1]}.") for name in described)
            if not inside and not any(part in described for part in parts):
                missing.append((path, key))
    assert not missing


def test_every_option_has_a_type_and_a_meaning(pages):
    presets = {f"{group}.md" for group in PRESETS}
    described = {name: rows(page) for name, page in pages.items() if name not in presets}
    assert sum(map(len, described.values())) > 100
    for name, options in described.items():
        for option, (kind, _, meaning) in options.items():
            assert kind, (name, option)
            assert re.search(r"[A-Za-z]", meaning), (name, option)


def test_an_option_has_type_unit_default_and_meaning(pages):
    assert rows(pages["weighting.md"])["eta"][:2] == [
        "finite number of at least 0",
        "`0.05`",
    ]
    kind, default, meaning = rows(pages["stage.md"])["meta_batch_size"]
    assert (kind, default) == ("whole number from 1 to 1048576, in examples", "`32`")
    assert meaning == "Examples of `B_val`, for the meta-gradient."
    kind, default, _ = rows(pages["run.md"])["max_steps"]
    assert (kind, default) == ("whole number of at least 1 or null, in steps", "`null`")
    assert rows(pages["task.md"])["train"][0].startswith("text")


def test_an_option_that_only_the_code_knows_is_there_too(pages):
    assert "`image_column` (add with `+`)" in pages["task.md"]


def test_a_choice_shows_what_it_sets(pages):
    assert "### stage=dapt_full" in pages["stage.md"]
    block = pages["stage.md"].split("### stage=dapt_full")[1].split("```")[1]
    assert "batch_size: 2048" in block
    assert "optimisation.body_lr: 0.0005" in block


def test_a_method_lists_its_stages_in_order(pages):
    section = pages["method.md"].split("## method=dapt_tapt")[1].split("\n## ")[0]
    assert re.findall(r"\[stage=(\w+)\]", section) == ["dapt", "tapt", "finetune"]


def test_every_experiment_is_listed_with_what_it_picks(pages):
    for name in (path.stem for path in (CONF / "experiment").glob("*.yaml")):
        assert f"| `{name}`" in pages["experiment.md"]
    (row,) = [line for line in pages["experiment.md"].splitlines() if "`digits_meta`" in line]
    assert "`method=meta_tartan`" in row
    assert "`micro_batch_size=512`" in row  # from the file that it builds on


def test_options_that_nobody_has_described_fail_and_are_named(tmp_path):
    conf = shutil.copytree(CONF, tmp_path / "conf")
    trainer = conf / "trainer" / "default.yaml"
    trainer.write_text(trainer.read_text() + "max_time: null # [text or null]\nbarebones: false\n")
    with (conf / "config.yaml").open("a") as file:
        file.write("\nmystery: null # nobody knows of what type\n")
    with pytest.raises(UndescribedError) as error:
        config_pages(conf)
    lines = str(error.value).splitlines()
    named = [line.split(";")[0] for line in lines]
    assert named[0] == (
        f"{conf / 'config.yaml'}: mystery has no type: end its description with [TYPE] or [TYPE"
    )
    # in the file itself, and in every one that builds on it
    for option in ("max_time", "barebones"):
        files = {line.split(": ")[0] for line in named if f": {option} has no desc" in line}
        assert files == {str(path) for path in (conf / "trainer").glob("*.yaml")}


def test_types_are_said_in_the_words_of_the_error_messages():
    assert type_words(int | None) == "whole number or null"
    assert type_words(dict[str, float]) == "mapping of names to finite numbers"
    assert type_words(list[str]) == "list of texts"


def test_the_build_that_is_checked_is_the_one_of_make_docs():
    lines = (ROOT / "Makefile").read_text().splitlines()
    (line,) = [line for line in lines if "sphinx" in line]
    assert "-W" in line.split()
    made = [line.split() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    assert any(words[:1] == ["make"] and "docs" in words for words in made)
