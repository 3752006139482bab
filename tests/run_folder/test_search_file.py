"""A search file sets what is of the search alone."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir

from tartan.errors import UserError
from tartan.run_folder.search_file import check_search_file
from tartan.run_folder.sweep import SweepReport
from tests.in_process import CONF

HYDRA = "hydra: {sweeper: {n_trials: 1, params: {seed: 'choice(0, 1)'}}}\n"
OWN = f"# @package _global_\ndefaults:\n- base\n{HYDRA}"
SAYS = r"which the command in run_next\.txt would lack; take that out of the search file"


@pytest.fixture
def searched(tmp_path):
    """Call something with the config of a search of one's own."""

    def call(checked, file, *options):
        (tmp_path / "search").mkdir(exist_ok=True)
        (tmp_path / "search" / "mine.yaml").write_text(file)
        place = f"hydra.searchpath=[file://{tmp_path}]"
        # of the command line only: a lone run is no sweep
        given = [place, "hydra.mode=MULTIRUN", "+experiment=digits_meta", "+search=mine", *options]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return checked(compose("config", overrides=given, return_hydra_config=True))

    return call


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ("max_steps: 3\n", "search=mine sets max_steps, "),
        (
            "max_steps: 3\nclassifier: {dropout: 0.4}\n",
            "search=mine sets classifier.dropout and 1 ",
        ),
        ("mine: {}\n", "search=mine sets mine, "),
    ],
)
def test_what_it_sets_for_the_runs_is_refused(beside, said, searched):
    with pytest.raises(UserError, match=f"^{said}.*{SAYS}"):
        searched(check_search_file, OWN + beside)


def test_an_option_that_it_chooses_in_its_defaults_is_refused(searched):
    with pytest.raises(UserError, match=r"^search=mine sets weighting\."):
        searched(check_search_file, OWN.replace("- base", "- base\n- override /weighting: uniform"))


@pytest.mark.parametrize(
    ("beside", "options"),
    [
        ("", []),
        ("seed: 3\nverbose: true\nevaluate_test: false\n", []),
        ("max_steps: 3\n", ["max_steps=5"]),
        ("max_steps: 3\n", ["evaluate_test=true"]),
    ],
)
def test_what_the_command_after_the_search_does_not_lack_may_be_set(beside, options, searched):
    searched(check_search_file, OWN + beside, *options)


def test_the_search_does_not_begin(searched, capsys, tmp_path):
    runs = tmp_path / "runs"
    with pytest.raises(SystemExit):
        searched(SweepReport().on_multirun_start, f"{OWN}max_steps: 3\n", f"paths.runs_dir={runs}")
    assert capsys.readouterr().err.startswith("error: search=mine sets max_steps, ")
    assert not runs.exists()
