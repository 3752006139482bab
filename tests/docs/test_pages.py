"""The commands that the pages show are ones that the programs understand."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

import studies.__main__ as study
import tartan.report.main as report
from tartan import ContinuedPretraining, TartanData
from tartan.compare.plan import request_of
from tartan.core.weighting.meta import Meta
from tartan.predict.main import quote_values
from tests.conftest import ROOT
from tests.in_process import CONF, toy

PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
CONFIG = re.compile(r"(?:# @package \S+\n)?# (?:my_)?conf/(\S+\.yaml)\n")
"""The first lines of a block that is a config of the reader's own."""


def blocks(page: Path, language: str) -> list[str]:
    """The page's blocks of one language."""
    return [code for kind, code in BLOCK.findall(page.read_text("utf-8")) if kind == language]


def lines():
    """Page and words of each line in a block of commands, comments left out."""
    for page in PAGES:
        for block in blocks(page, "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                words = [word for word in shlex.split(line, comments=True) if word != "&"]
                if words and "${" not in line:  # what a loop fills in
                    yield page.name, words


def commands(program: str) -> list[list[str]]:
    """Arguments of each `tartan PROGRAM` or `... -m src.PROGRAM` on a page."""
    shown = []
    for _, words in lines():
        if words[:2] == ["tartan", program.replace("_", "-")]:
            shown.append(words[2:])
        elif f"src.{program}" in words:
            shown.append(words[words.index(f"src.{program}") + 1 :])
    return shown


@pytest.fixture
def composed(tmp_path):
    """Composes a program's config; the folder has the files that the pages tell to write too."""
    folder = shutil.copytree(CONF, tmp_path / "conf")
    for page in PAGES:
        for block in blocks(page, "yaml"):
            if name := CONFIG.match(block):
                path = folder / name[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block, encoding="utf-8")
    with initialize_config_dir(str(folder), version_base="1.3"):
        yield compose


def jobs(arguments: list[str]) -> list[tuple[str, ...]]:
    """Jobs of a command line that have every value of every option once, without what is Hydra's.

    One seed stands for all: a sweep's product would take minutes to compose. Before a sweep's jobs,
    Hydra composes the options that have one value.
    """
    options = [word for word in arguments if "=" in word and word[0] != "-"]
    options = ["seed=0" if option.startswith("seed=") else option for option in options]
    kept = [option for option in quote_values(options) if not option.startswith("hydra.")]
    values = []
    for parsed in OverridesParser.create().parse_overrides(kept):
        (alternatives,) = BasicSweeper.split_arguments([parsed], max_batch_size=None)
        values.append([alternative for (alternative,) in alternatives])
    count = max(map(len, values), default=1)
    before = [tuple(own[0] for own in values if len(own) == 1)] if count > 1 else []
    return before + [tuple(own[k % len(own)] for own in values) for k in range(count)]


def distinct(program: str) -> set[tuple[str, ...]]:
    """The jobs of all pages' commands of a program, each once, however many pages show it.

    An experiment alone is composed by the tests of `conf`.
    """
    shown = {job for arguments in commands(program) for job in jobs(arguments)}
    shown = {tuple(option for option in job if option != "seed=0") for job in shown}
    return {job for job in shown if len(job) > 1 or "".join(job)[:12] != "+experiment="} - {()}


def test_there_are_commands_and_all_are_of_programs_that_are_tested():
    assert len(commands("run")) > 40
    tested = {"run", "check", "predict", "export", "build_corpus", "compare", "report"}
    shown = {words[1].replace("-", "_") for _, words in lines() if words[0] == "tartan"}
    assert shown <= tested


@pytest.mark.parametrize(
    "program", [pytest.param("run", marks=pytest.mark.slow), "check", "export", "build_corpus"]
)
def test_commands_that_pages_show_compose(composed, program):
    for job in sorted(distinct(program)):
        if program == "check" and {"task.train=labels.csv"} == {
            o for o in job if o[:5] in ("task.", "+expe")
        }:
            job = (*job, "+experiment=custom")  # as the command adds it
        config = composed("config" if program == "run" else program, overrides=list(job))
        assert config.sources if program == "build_corpus" else "task" in config, job


def test_other_commands_that_pages_show_are_understood(composed):
    options = OmegaConf.load(CONF / "predict.yaml")
    for arguments in commands("predict"):
        named = {word.partition("=")[0] for word in arguments}
        assert {"model", "input"} <= named <= set(options), arguments
    for arguments in commands("compare"):
        if arguments != ["--help"]:
            assert composed("config", overrides=list(request_of(arguments).overrides)), arguments
    for arguments in commands("report"):
        assert report._parser().parse_args(arguments).runs, arguments
    for _, words in lines():
        if words[1:3] == ["-m", "studies"]:
            assert study._arguments(words[3:]), words


def test_targets_and_extras_that_pages_show_are_there():
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for page, words in lines():
        for word in words[1:] if words[0] == "make" else ():
            name, equals, _ = word.partition("=")
            assert (f"$({name})" if equals else f"\n{name}:") in makefile, (page, word)
        for named in re.findall(r"\.\[([\w,]+)\]", " ".join(words)):
            assert set(named.split(",")) <= set(project["optional-dependencies"]), page


def test_programs_that_pages_show_are_python():
    for page in PAGES:
        for code in blocks(page, "python"):
            compile(code, str(page), "exec")


def first_cells(page: str) -> list[str]:
    """The first cells of the rows of a page's tables."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]


@pytest.mark.slow
def test_what_a_page_composes_from_python_runs(data_dir, cache_dir, tmp_path, monkeypatch, capsys):
    """On the tests' own small data."""
    (code,) = blocks(ROOT / "docs" / "hydra.md", "python")
    options = str(["+debug=fast", *toy(data_dir, cache_dir, "meta_tartan")])[1:-1]
    code = code.replace('"+debug=fast"', options)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(code, names)
    assert capsys.readouterr().out.rstrip().splitlines()[-1].startswith("0.")
    assert isinstance(names["weighting"], Meta)
    assert (tmp_path / "runs" / "from_python" / "result.json").is_file()


def test_the_module_of_a_pages_reader_trains(tmp_path, monkeypatch):
    (code,) = [b for b in blocks(ROOT / "docs" / "lightning.md", "python") if "Step(Passes" in b]
    assert "lr=1e-4" in code
    code = code.replace("lr=1e-4", "lr=1e-2")  # of an encoder that knows nothing yet
    code = code.replace("devices=1", "devices=1, accelerator='cpu', enable_progress_bar=False")
    rows = [("a good text", "good"), ("a bad text", "bad")]
    data = TartanData(rows * 10, rows, encoder="tiny", auxiliaries={"tapt": "task"})
    monkeypatch.chdir(tmp_path)
    ContinuedPretraining.for_data(data, lr=1e-3).save_pretrained("encoder")
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(code, names)
    metrics = names["trainer"].callback_metrics
    assert metrics["loss"] < 0.2  # the labels' entropy is 0.69
    assert 0 < metrics["weight"] < 1
    assert names["trainer"].global_step == 60


def test_tables_of_pages_are_complete():
    weightings = {
        name for row in first_cells("weighting.md") for name in re.findall(r"`(\w+)`", row)
    }
    assert {path.stem for path in (CONF / "weighting").glob("*.yaml")} <= weightings
    wanted = {f"table {n}" for n in range(1, 9)} | {f"figure {n}" for n in (2, 3, 4)}
    assert wanted <= set(first_cells("reproduce.md"))


def test_the_code_beside_algorithm_1_is_the_program_s():
    (shown,) = blocks(ROOT / "docs" / "algorithm.md", "python")
    assert shown == textwrap.dedent(inspect.getsource(Meta.mix))


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100


def test_readme_reads_easily():
    """Of a hundred words of prose at most 2 are numbers, 1.5 in brackets and 0.7 negations."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|<!--.*?-->|`[^`]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    prose = " ".join(line for line in text.splitlines() if not line.startswith(("|", "#", "![")))
    hundreds = len(re.findall(r"[A-Za-z][\w'-]*", prose)) / 100
    numbers, brackets = re.findall(r"(?<![\w.])\d[\d.,]*", prose), re.findall(r"\(", prose)
    negations = re.findall(
        r"\b(?:not|no|never|none|nor|neither|without|cannot|nothing)\b", prose, re.I
    )
    assert len(numbers) <= 2 * hundreds
    assert len(brackets) <= 1.5 * hundreds
    assert len(negations) <= 0.7 * hundreds
