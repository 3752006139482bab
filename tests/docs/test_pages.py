"""The commands that the pages show are ones that the programs understand."""

from __future__ import annotations

import csv
import inspect
import re
import shlex
import shutil
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

import studies.__main__ as study
import tartan.report.main as report
from docs.builder.included_code import with_code
from tartan.compare.request import request_of
from tartan.core.step import StepRecord
from tartan.core.weighting.meta import Meta
from tartan.predict.predict import Settings, predict_file
from tartan.runs.run import run_experiment
from tests.conftest import ROOT
from tests.in_process import CONF, config_of

pytestmark = pytest.mark.slow

PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
CONFIG = re.compile(r"(?:# @package \S+\n)?# (?:my_)?conf/(\S+\.yaml)\n")
"""The first lines of a block that is a config of the reader's own."""
PROGRAMS = {
    "run",
    "check",
    "predict",
    "build_corpus",
    "compare",
    "report",
    "study",
    "benchmarks.gpu_check",
}
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
    """Page and arguments of each `... -m src.PROGRAM` or `tartan PROGRAM` on a page."""
    for page, words in lines():
        if words[:2] == ["tartan", program.replace("_", "-")]:
            yield pytest.param(words[2:], id=f"{page.stem}: {' '.join(words)}"[:120])
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
                path.write_text(block, encoding="utf-8")
    return str(folder)


def jobs(arguments: list[str]) -> list[tuple[str, ...]]:
    """Jobs of a command line that have every value of every option once, without what is Hydra's.

    One seed stands for all: a sweep's product would take minutes to compose. Before a sweep's jobs,
    Hydra composes the options that have one value.
    """
    options = [word for word in arguments if "=" in word and word[0] != "-"]
    options = ["seed=0" if option.startswith("seed=") else option for option in options]
    kept = [option for option in options if not option.startswith("hydra.")]
    values = []
    for parsed in OverridesParser.create().parse_overrides(kept):
        (alternatives,) = BasicSweeper.split_arguments([parsed], max_batch_size=None)
        values.append([alternative for (alternative,) in alternatives])
    count = max(map(len, values), default=1)
    before = [tuple(own[0] for own in values if len(own) == 1)] if count > 1 else []
    return before + [tuple(own[k % len(own)] for own in values) for k in range(count)]


def composed(conf: str, program: str, job: Sequence[str]) -> DictConfig:
    """A job's config."""
    with initialize_config_dir(conf, version_base="1.3"):
        return compose(program, overrides=list(job))


def distinct(program: str):
    """The jobs of all pages' commands of a program, each once, however many pages show it."""
    found = {
        job: command.id
        for command in commands(program)
        for job in reversed(jobs(command.values[0]))
    }
    return [
        pytest.param(job, id=f"{page}, {len(job)}")
        for job, page in found.items()
        if {*job} - {"seed=0"}
    ]


def test_there_are_commands_and_all_are_of_programs_that_are_tested():
    assert len(list(commands("run"))) > 40
    for page, words in lines():
        for place, word in enumerate(words[:-1]):
            if word == "-m" and words[place + 1].startswith("src."):
                assert words[place + 1].removeprefix("src.") in PROGRAMS, (page, words)


@pytest.mark.parametrize("job", distinct("run"))
def test_a_run_that_a_page_shows_composes(conf, job):
    experiment, *more = [option for option in job if option != "seed=0"]
    if experiment.startswith("+experiment=") and not more:  # composed by tests/test_conf.py
        assert Path(conf, "experiment", f"{experiment.partition('=')[2]}.yaml").is_file()
    else:
        assert "task" in composed(conf, "config", job)


@pytest.mark.parametrize("job", distinct("check"))
def test_a_check_that_a_page_shows_composes(conf, job):
    assert "task" in composed(conf, "check", job)


@pytest.mark.parametrize("arguments", list(commands("predict")))
def test_a_prediction_that_a_page_shows_is_understood(arguments):
    options = OmegaConf.load(CONF / "predict.yaml")
    given = {word.partition("=")[0] for word in arguments}
    assert {"model", "input"} <= given <= set(options)


@pytest.mark.parametrize("job", distinct("build_corpus"))
def test_a_corpus_that_a_page_shows_composes(conf, job):
    config = composed(conf, "build_corpus", job)
    assert config.sources
    assert config.output


@pytest.mark.parametrize("arguments", list(commands("compare")))
def test_a_comparison_that_a_page_shows_is_understood(conf, arguments):
    if arguments != ["--help"]:
        assert composed(conf, "config", request_of(arguments).overrides)


@pytest.mark.parametrize("arguments", list(commands("report")))
def test_a_report_that_a_page_shows_is_understood(arguments):
    assert report._parser().parse_args(arguments).runs


@pytest.mark.parametrize("arguments", list(commands("study")))
def test_a_study_that_a_page_shows_is_understood(arguments):
    assert study._arguments(arguments)


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


def rows_of(page: str) -> list[str]:
    """The first cells of the rows of a page's tables."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]


def test_what_a_page_composes_from_python_runs(tmp_path, monkeypatch, capsys):
    (code,) = blocks(ROOT / "docs" / "hydra.md", "python")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(code, names)
    assert capsys.readouterr().out.rstrip().splitlines()[-1].startswith("0.")
    assert isinstance(names["weighting"], Meta)
    assert (tmp_path / "runs" / "from_python" / "result.json").is_file()


def test_the_wrong_rows_that_a_page_finds_are_those_of_test(tmp_path, monkeypatch):
    """Of a table in which some rows have no label."""
    (code,) = [b for b in blocks(ROOT / "docs" / "output.md", "python") if "splits.csv" in b]
    monkeypatch.chdir(tmp_path)
    rows = [(f"{'red' if i % 2 else 'old'} thing {i}", ["", "a", "b"][i % 3]) for i in range(60)]
    lines = ["text,label", *(f"{text},{label}" for text, label in rows)]
    Path("labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    common = ["encoder=tiny", f"cache_dir={tmp_path}/cache", "trainer.enable_progress_bar=false"]
    run_experiment(
        config_of(
            [
                "+experiment=custom_finetune",
                "task.train=labels.csv",
                "task.empty_label=unlabelled",
                "max_steps=1",
                *common,
            ]
        ),
        tmp_path / "run",
    )
    predict_file(Settings(model="run/classifier", input="labels.csv", output="checked.csv"))
    names: dict[str, Any] = {}
    exec(re.sub(r'"runs/[^"]+"', '"run"', code), names)
    with open("run/splits.csv", encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
        tested = [int(row["line"]) - 2 for row in csv.DictReader(file) if row["split"] == "test"]
    assert len(tested) == 8
    wrong = names["wrong"]
    found = set(zip(wrong["text"], wrong["label"], strict=True))
    predicted = dict(zip(names["rows"]["text"], names["rows"]["predicted_label"], strict=True))
    assert found == {rows[i] for i in tested if predicted[rows[i][0]] != rows[i][1]}
    assert found


def test_the_loop_of_a_pages_reader_trains(capsys):
    (code,) = [b for b in blocks(ROOT / "docs" / "lightning.md", "python") if "Step(Passes" in b]
    torch.manual_seed(0)
    names: dict[str, object] = {}
    exec(code, names)
    record = names["record"]
    assert isinstance(record, StepRecord)
    assert record.losses.max() < 0.1  # the variance of the targets is 5
    assert float(record.weights.sum()) == pytest.approx(1)
    assert "tensor" in capsys.readouterr().out


def test_every_weighting_is_in_the_gallery():
    shown = {name for row in rows_of("weighting.md") for name in re.findall(r"`(\w+)`", row)}
    assert {path.stem for path in (CONF / "weighting").glob("*.yaml")} <= shown


def test_every_table_and_figure_of_the_paper_has_a_row():
    wanted = {f"table {n}" for n in range(1, 9)} | {f"figure {n}" for n in (2, 3, 4)}
    assert wanted <= set(rows_of("reproduce.md"))


def test_the_code_beside_algorithm_1_is_the_program_s():
    page = (ROOT / "docs" / "algorithm.md").read_text(encoding="utf-8")
    (shown,) = blocks(ROOT / "docs" / "algorithm.md", "python")
    assert shown == textwrap.dedent(inspect.getsource(Meta.mix))
    stale = page.replace(shown, "def mix(): ...\n")
    assert with_code(page) == with_code(stale) == page


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100
