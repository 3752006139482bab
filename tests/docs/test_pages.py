"""The commands that the pages show are ones that the programs understand."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

import src.report.__main__ as report
import src.study.__main__ as study
from src.compare.request import request_of
from tests.conftest import ROOT
from tests.in_process import CONF

PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
CONFIG = re.compile(r"# (?:my_)?conf/(\S+\.yaml)\n")
"""The first line of a block that is a config of the reader's own."""
PROGRAMS = {"run", "check", "predict", "build_corpus", "compare", "report", "study", "bench"}
TARGETS = (ROOT / "Makefile").read_text()


def blocks(page: Path, language: str) -> list[str]:
    """The page's blocks of one language."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for kind, code in found if kind == language]


def lines():
    """Page and words of each line in a block of commands, comments left out."""
    for page in PAGES:
        for block in blocks(page, "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                words = [word for word in shlex.split(line, comments=True) if word != "&"]
                if words and "${" not in line:  # what a loop fills in
                    yield page, words


def commands(program: str):
    """Page and arguments of each `... -m src.PROGRAM` on a page."""
    for page, words in lines():
        for place, word in enumerate(words[:-1]):
            if word == "-m" and words[place + 1] == f"src.{program}":
                arguments = words[place + 2 :]
                yield pytest.param(arguments, id=f"{page.stem}: {' '.join(arguments)}"[:120])


def starting(first: str):
    """Page and words of each line that begins with a word."""
    for page, words in lines():
        if words[0] == first:
            yield pytest.param(words[1:], id=f"{page.stem}: {' '.join(words)}"[:120])


@pytest.fixture(scope="module")
def conf(tmp_path_factory) -> str:
    """`conf`, with the files that the pages tell their readers to write."""
    folder = shutil.copytree(CONF, tmp_path_factory.mktemp("pages") / "conf")
    for page in PAGES:
        for block in blocks(page, "yaml"):
            name = CONFIG.match(block)
            if name is not None:
                path = folder / name[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block[name.end() :], encoding="utf-8")
    return str(folder)


def composed(conf: str, program: str, arguments: list[str]) -> list:
    """The config of each job of a command line with one seed, without what is Hydra's own."""
    options = [word for word in arguments if "=" in word and word[0] != "-"]
    options = ["seed=0" if option.startswith("seed=") else option for option in options]
    parsed = OverridesParser.create().parse_overrides(options)
    (jobs,) = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    with initialize_config_dir(conf, version_base="1.3"):
        kept = [[option for option in job if not option.startswith("hydra.")] for job in jobs]
        return [compose(program, overrides=job) for job in kept]


def test_there_are_commands_and_all_are_of_programs_that_are_tested():
    assert len(list(commands("run"))) > 40
    for page, words in lines():
        for place, word in enumerate(words[:-1]):
            if word == "-m" and words[place + 1].startswith("src."):
                assert words[place + 1].removeprefix("src.") in PROGRAMS, (page, words)


@pytest.mark.parametrize("arguments", list(commands("run")))
def test_a_run_that_a_page_shows_composes(conf, arguments):
    assert all("task" in config for config in composed(conf, "config", arguments))


@pytest.mark.parametrize("arguments", list(commands("check")))
def test_a_check_that_a_page_shows_composes(conf, arguments):
    assert all("task" in config for config in composed(conf, "check", arguments))


@pytest.mark.parametrize("arguments", list(commands("predict")))
def test_a_prediction_that_a_page_shows_composes(conf, arguments):
    quoted = [re.sub(r"=(.*)", r"='\1'", word) for word in arguments]  # taken as they stand
    (config,) = composed(conf, "predict", quoted)
    assert {"model", "input"} <= {word.partition("=")[0] for word in arguments}
    assert config.model


@pytest.mark.parametrize("arguments", list(commands("build_corpus")))
def test_a_corpus_that_a_page_shows_composes(conf, arguments):
    (config,) = composed(conf, "build_corpus", arguments)
    assert config.sources
    assert config.output


@pytest.mark.parametrize("arguments", list(commands("compare")))
def test_a_comparison_that_a_page_shows_is_understood(conf, arguments):
    if arguments != ["--help"]:
        request = request_of(arguments)
        assert composed(conf, "config", list(request.overrides))


@pytest.mark.parametrize("arguments", list(commands("report")))
def test_a_report_that_a_page_shows_is_understood(arguments):
    assert report._parser().parse_args(arguments).runs


@pytest.mark.parametrize("arguments", list(commands("study")))
def test_a_study_that_a_page_shows_is_understood(arguments):
    assert study._parser().parse_args(arguments)


@pytest.mark.parametrize("arguments", list(starting("make")))
def test_a_target_that_a_page_shows_is_there(arguments):
    targets = [word for word in arguments if "=" not in word]
    assert targets
    for target in targets:
        assert re.search(rf"^{re.escape(target)}:", TARGETS, flags=re.MULTILINE), target
    for variable in (word.partition("=")[0] for word in arguments if "=" in word):
        assert f"$({variable})" in TARGETS, variable


@pytest.mark.parametrize("arguments", list(starting("pip")))
def test_what_a_page_installs_is_an_extra_of_the_project(arguments):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for named in re.findall(r"\.\[([\w,]+)\]", " ".join(arguments)):
        assert set(named.split(",")) <= set(extras)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_that_a_page_shows_are_python(page):
    for code in blocks(page, "python"):
        compile(code, str(page), "exec")
