"""A wrong command line is one line that names the right word."""

from __future__ import annotations

import errno
import os
import sys

import pytest
import yaml
from hydra.errors import ConfigCompositionException, MissingConfigException

from tartan.command_line.hydra_errors import explanation, run_command_line
from tests.in_process import CONF, config_of


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch):
    """Put back what `run_command_line` sets for its process, which is the tests' here."""
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    monkeypatch.setenv("TARTAN_ONE_LINE_ERRORS", "1")
    monkeypatch.delenv("TARTAN_ONE_LINE_ERRORS")


CASES = {
    "task.max_lenght=8": "there is no option task.max_lenght; did you mean task.max_length?",
    "experimnt=3": "there is no option experimnt; did you mean experiment?",
    "encodr=minilm": "there is no option encodr; did you mean encoder?",
    "method.stages.joint.batch_sizes=3": (
        "there is no option method.stages.joint.batch_sizes; "
        "did you mean method.stages.joint.batch_size?"
    ),
    "weighting.etas=1": "there is no option weighting.etas; did you mean weighting.eta?",
    "auxiliary.tapt.objective.probabilty=0.2": (
        "there is no option auxiliary.tapt.objective.probabilty; "
        "did you mean auxiliary.tapt.objective.probability?"
    ),
    "encoder=minlm": "there is no encoder=minlm; did you mean encoder=minilm?",
    "encoder=bert-base-uncased": (
        "there is no encoder=bert-base-uncased; there are huggingface, minilm, minilm_adapted, "
        "roberta_base, roberta_base_random, tiny, wide_resnet; a model of the Hub, or in a "
        "folder: encoder=huggingface encoder.name=bert-base-uncased"
    ),
    "task.train=labels.csv": (
        "there is no option task.train; there are cache_dir, dev_per_class, labelled, libraries, "
        "max_length, metric, name, split, split_seed, test_per_class, train_per_class; a table of "
        "your own is task=files"
    ),
    "trainer.max_time=1": (
        "there is no option trainer.max_time; there are accelerator, devices, "
        "enable_progress_bar, log_every_n_steps, precision; another option of Lightning's "
        "Trainer has a + before it: +trainer.max_time=VALUE"
    ),
    "trainer.max_epochs=5": (
        "trainer.max_epochs is not used here; set method.stages.STAGE.max_epochs instead"
    ),
    "trainer.logger=csv": (
        "trainer.logger is not used here; set logger=NAME, or +logger.NAME._target_=CLASS instead"
    ),
    "+experiment=acl_arc_mta": (
        "there is no experiment=acl_arc_mta; did you mean experiment=acl_arc_meta?"
    ),
    "weighting=upgard": "there is no weighting=upgard; did you mean weighting=upgrad?",
    "logger=zzz": "there is no logger=zzz; there are default, mlflow, none, wandb",
    "+debug=fdr": "there is no debug=fdr; there is only fast",
    "ckpt_path=a.ckpt": (
        "there is no option ckpt_path; the same command resumes its run (docs/hydra.md)"
    ),
    "data=a": (
        "there is no option data; use task= and auxiliary=, data_dir=FOLDER, num_workers=, or "
        "method.stages.STAGE.batch_size= (docs/hydra.md)"
    ),
    "hparams_search=a": "there is no option hparams_search; use -m +search=NAME (docs/hydra.md)",
    "batch_size=8": (
        "there is no option batch_size; batch sizes are those of a stage: "
        "method.stages.joint.batch_size=32"
    ),
    "learning_rate=1e-4": (
        "there is no option learning_rate; learning rates are those of a stage: "
        "method.stages.joint.optimisation.body_lr=2e-5"
    ),
    "method.stages.joint.lr=1": (
        "there is no option method.stages.joint.lr; learning rates are those of a stage: "
        "method.stages.joint.optimisation.body_lr=2e-5"
    ),
    "seed": "cannot read 'seed'; options are given as NAME=VALUE",
    "seed=[1,": (
        "cannot read 'seed=[1,'; a value with brackets, quotes or letters beyond a to z is quoted "
        "twice: 'seed=\"[1,\"'"
    ),
    "task.text=Größe": (
        "cannot read 'task.text=Größe'; a value with brackets, quotes or letters beyond a to z is "
        "quoted twice: 'task.text=\"Größe\"'"
    ),
    "~nothing": "Could not delete from config. 'nothing' does not exist.",
    "+seed=3": (
        "Could not append to config. An item is already at 'seed'.; "
        "Either remove + prefix: 'seed=3'; "
        "Or add a second + to add or override 'seed': '++seed=3'"
    ),
}


@pytest.mark.parametrize("override", CASES)
def test_it_is_explained_in_one_line(override):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        config_of([override])
    assert explanation(caught.value) == CASES[override]


def test_the_stages_of_the_method_that_was_asked_for_are_named():
    with pytest.raises(Exception, match="num_train_epochs") as caught:
        config_of(["method=dapt_tapt", "num_train_epochs=3"])
    assert explanation(caught.value) == (
        "there is no option num_train_epochs; epochs are those of a stage: "
        "method.stages.STAGE.max_epochs=3 (STAGE: dapt, tapt, finetune)"
    )


@pytest.mark.parametrize("arguments", [["encoder=minlm"], ["-m", "seed=0,1", "encoder=minlm"]])
def test_the_command_exits_with_it(run_cli, arguments, tmp_path):
    finished = run_cli(*arguments, timeout=60)
    assert finished.returncode == 1
    assert finished.stderr.strip() == f"error: {CASES['encoder=minlm']}"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["seed=interval(0,1)"], "requires --multirun; it needs -m"),
        (
            ["-m", "seed=interval(0,1)"],
            "BasicSweeper does not support sweep type : INTERVAL_SWEEP; interval(...) and the like "
            "need +search=NAME",
        ),
        (["hydra.searchpath=[file://nowhere]"], "hydra.searchpath: nowhere does not exist"),
    ],
)
def test_what_hydra_says_is_completed(arguments, said, run_cli):
    finished = run_cli(*arguments, timeout=60)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith(said)


def test_a_sweeps_job_without_a_config_is_named(run_cli):
    finished = run_cli("-m", "seed=4", "encoder=tiny,minlm", timeout=60)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line == f"error: {CASES['encoder=minlm']} (in the sweep's job seed=4 encoder=minlm)"


@pytest.mark.parametrize("value", ["3", "nan", "[1,2]", "1,2", "true"])
def test_a_choice_that_is_no_name_is_one_line(value, monkeypatch, capsys):
    argument = f"weighting={value}"
    monkeypatch.setattr(sys, "argv", ["run", "seed=4", argument])
    with pytest.raises(SystemExit) as ended:
        run_command_line(lambda: config_of([argument.replace("1,2", "1")]))
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {argument}: a choice of weighting is a name; quote one")


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        ("logger=null", "; for nothing: logger=none"),
        ("callbacks=null", "; for nothing: callbacks=none"),
        ("encoder=null", ", not null"),
    ],
)
def test_null_is_no_choice(argument, advice, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run", argument])
    with pytest.raises(SystemExit, match="1"):
        run_command_line(lambda: config_of([argument]))
    group = argument.partition("=")[0]
    expected = f"error: {argument}: a choice of {group} is a name{advice}\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("other", ["/tmp", "x" * 5000, "/tmp=3", "../conf=3", "~weighting"])
def test_an_argument_that_chooses_nothing_is_not_looked_at(other, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "--config-dir", other, "seed=4"])
    with pytest.raises(ValueError, match="something else"):
        run_command_line(lambda: (_ for _ in ()).throw(ValueError("something else")))


def test_other_errors_of_these_classes_are_not_explained_away(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run", "seed=4", "weighting=meta"])
    with pytest.raises(ValueError, match="something else"):
        run_command_line(lambda: (_ for _ in ()).throw(ValueError("something else")))


def test_hydras_own_switch_shows_the_whole_traceback(run_cli, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    finished = run_cli("encoder=minlm", timeout=60)
    assert finished.returncode == 1
    assert "Traceback" in finished.stderr


def test_commands_that_a_command_starts_do_not_take_its_switch_for_the_users(run_cli, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run"])
    run_command_line(lambda: None)
    assert os.environ["HYDRA_FULL_ERROR"] == "1"
    finished = run_cli("encoder=minlm", timeout=60)
    assert finished.stderr == "error: there is no encoder=minlm; did you mean encoder=minilm?\n"


def test_a_run_folder_that_cannot_be_made_is_one_line(run_cli, tmp_path):
    (tmp_path / "file").write_text("")
    finished = run_cli(f"hydra.run.dir={tmp_path}/file/run", timeout=60)
    assert finished.returncode == 1
    assert finished.stderr.strip() == (f"error: cannot write {tmp_path}/file/run: Not a directory")


@pytest.mark.parametrize(
    ("missing", "extra"),
    [
        ("hydra/launcher/joblib", "launchers"),
        ("hydra/launcher/submitit_slurm", "launchers"),
        ("hydra/sweeper/optuna", "search"),
    ],
)
def test_what_an_extra_brings_names_the_extra(missing, extra):
    error = MissingConfigException(f"Could not find '{missing}'", missing, ["basic"])
    line = explanation(error)
    assert f"pip install -e '.[{extra}]'" in line
    assert missing in line


def test_an_option_of_the_folders_name_without_a_value_is_named(run_cli, monkeypatch):
    monkeypatch.delenv("NOPE", raising=False)
    finished = run_cli("seed=${oc.env:NOPE}", timeout=60)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line.startswith("error: seed: ")
    assert line.endswith("\"Environment variable 'NOPE' not found\"")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--config-name", "mine", "experiment=custom"],
        ["--config-path", "{folder}", "experiment=reviews"],
        ["-m", "--config-name", "of/mine", "seed=1,2"],
    ],
)
def test_another_main_config_is_answered_with_where_files_of_ones_own_belong(
    arguments, run_cli, tmp_path
):
    finished = run_cli(*(one.format(folder=tmp_path) for one in arguments), timeout=60)
    assert finished.returncode == 1
    assert finished.stderr == (
        "error: the main config is conf/config.yaml; omit --config-name and --config-path; a "
        "folder of your own is given by --config-dir FOLDER, and its experiment/NAME.yaml "
        "by +experiment=NAME\n"
    )


def test_a_missing_file_that_a_file_names_is_not_taken_for_the_main_config(run_cli, tmp_path):
    own = tmp_path / "my_conf" / "experiment" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# @package _global_\ndefaults:\n  - custom\n  - /nothere\n")
    finished = run_cli("--config-dir", "my_conf", "+experiment=mine", timeout=60)
    assert finished.stderr == "error: In 'experiment/mine': Could not load 'nothere'.\n"


@pytest.mark.parametrize("sweep", [[], ["-m"]])
def test_a_run_does_not_change_into_its_folder(sweep, run_cli, tmp_path):
    finished = run_cli(*sweep, "hydra.job.chdir=true", timeout=60)
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line.startswith("error: with hydra.job.chdir=true relative paths would be read from")
    assert not (tmp_path / "runs").exists()


def test_a_name_that_is_not_utf_8_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run", "hydra.run.dir=runs/\udcff\udcfe"])
    with pytest.raises(SystemExit) as ended:
        run_command_line(lambda: pytest.fail("it went on"))
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "udcff" in line
    assert "is not UTF-8" in line


def test_a_read_only_file_system_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run"])

    def main():
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "runs/a/.hydra")

    with pytest.raises(SystemExit) as ended:
        run_command_line(main)
    assert ended.value.code == 1
    assert capsys.readouterr().err == ("error: cannot write runs/a/.hydra: Read-only file system\n")


def test_a_group_without_a_default_is_chosen_with_and_without_the_plus(monkeypatch):
    given = ["-m", "experiment=acl_arc_mt,acl_arc_meta", "+debug=fast", "search=paper", "seed=1"]
    monkeypatch.setattr(sys, "argv", ["run", *given])
    seen = []
    run_command_line(lambda: seen.extend(sys.argv[1:]))
    assert seen == ["-m", f"+{given[1]}", "+debug=fast", "+search=paper", "seed=1"]


def test_help_offers_experiments_and_not_what_they_share(run_cli):
    shown = run_cli("--help", timeout=60).stdout
    launchers = sorted(path.stem for path in (CONF / "hydra" / "launcher").glob("*.yaml"))
    assert f"\nhydra/launcher: {', '.join(launchers)} (of sweeps, -m)\n" in shown
    (offered,) = [line for line in shown.splitlines() if line.startswith("experiment: ")]
    names = offered.removeprefix("experiment: ").split(", ")
    assert {"acl_arc_meta", "custom", "quickstart"} <= set(names)
    assert not {"paper", "paper_joint", "images", "docstrings", "minilm_pretrain"} & set(names)


def test_a_config_that_is_no_yaml_is_one_line(tmp_path, monkeypatch, capsys):
    path = tmp_path / "bad.yaml"
    path.write_text("a: [1,\n  b: }\n")

    def load():
        with path.open() as file:
            yaml.safe_load(file)

    with pytest.raises(SystemExit, match="1"):
        run_command_line(load)
    assert capsys.readouterr().err.startswith(f"error: {path}, line 2: ")


LACKS = 'lacks the line "# @package _global_" as its first line, before any other comment'


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("experiment/mine", "task@experiment.task"),
        ("search/mine", "hydra/sweeper@search.hydra.sweeper"),
        ("method/mine", "weighting@method.weighting"),
        ("method/mine", "stage@method.method.stages.joint"),
    ],
)
def test_a_file_that_lacks_its_package_is_named(file, what):
    error = ConfigCompositionException(
        f"In '{file}': Could not override '{what}'.\nDid you mean ...?"
    )
    assert explanation(error) == f"{file}.yaml {LACKS}"


@pytest.mark.parametrize("file", ["experiment/mine", "method/mine"])
def test_a_stage_that_is_not_there_is_not_explained_away(file):
    error = ConfigCompositionException(
        f"In '{file}': Could not override 'stage@method.stages.joint'.\nDid you mean ...?"
    )
    assert "lacks" not in explanation(error)


def test_what_hydra_says_of_a_methods_file_is_explained(run_cli, tmp_path):
    own = tmp_path / "my_conf" / "method" / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("# mine\n# @package _global_\ndefaults:\n  - override /weighting: meta\n")
    finished = run_cli("--config-dir", "my_conf", "method=mine", timeout=60)
    assert finished.returncode == 1
    assert finished.stderr == f"error: method/mine.yaml {LACKS}\n"
