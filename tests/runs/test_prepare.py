"""What is wrong with a run is said before its first step, in one line with the option's name."""

from __future__ import annotations

import copy
from functools import cache

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError
from tartan.methods.module import TaskMixing
from tartan.runs.prepare import enabled_stages, prepare, weighting_needs
from tartan.runs.run import run_experiment
from tests.in_process import CONF, config_of, given_on_command_line, toy

STAGE, OBJECTIVE = "method.stages.finetune", "auxiliary.tapt.objective"
WRONG = [
    ("finetune", "seed", "-1 x 1.5 true null"),
    ("dapt", "auxiliary.seed", "-1"),
    ("finetune", "micro_batch_size", "0 many"),
    ("finetune", "num_workers", "-1 100000"),
    ("finetune", "packed", "maybe"),
    ("finetune", "checkpoint_minutes", "nan"),
    ("dapt", "auxiliary.size", "0 ten inf"),
    ("dapt", "auxiliary.dapt.text", "both"),
    ("tapt", "auxiliary.tapt.max_length", "x 7"),
    ("tapt", f"{OBJECTIVE}.probability", "0 1.1 nan x"),
    ("finetune", "task", "null"),
    ("finetune", "task.train", "5"),
    ("finetune", "task.dev_share", "1 0 half"),
    ("finetune", f"{STAGE}.batch_size", "0 x 1000000000000"),
    ("finetune", f"{STAGE}.bach_size", "8"),
    ("finetune", f"{STAGE}.max_epochs", "0 inf nan"),
    ("finetune", f"{STAGE}.module", "??? nowhere.X tartan.core.task.Task"),
    ("finetune", f"{STAGE}.optimisation", "adam"),
    ("finetune", f"{STAGE}.optimisation.decay", "cubic"),
    ("meta_tartan", "method.stages.joint.meta_head.lr", "-1 null"),
    ("meta_tartan", "weighting.eta", "-1 fast null"),
    ("finetune", "trainer.precision", "fp16 16-mixed"),
    ("finetune", "trainer.max_epochs", "5"),
    ("finetune", "trainer.val_check_interval", "0.5"),
    ("finetune", "trainer.callbacks", "[]"),
    ("finetune", "trainer.limit_test_batches", "2"),
    ("finetune", "experiment", "{max_steps: 3}"),
    ("finetune", "sede", "1"),
]
"""Method, option, and values that it cannot have."""


@pytest.fixture
def prepared(data_dir, cache_dir):
    """What a method's stages share, by its options."""
    return lambda method, *options: checked(config_of(toy(data_dir, cache_dir, method, *options)))


def checked(config):
    """Data and encoder of a run, as far as it gets before its first stage."""
    stages = enabled_stages(config)
    prepared = prepare(config, stages)
    weighting_needs(config, stages, prepared)
    return prepared


def error_of(call, *arguments) -> str:
    with pytest.raises(UserError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


@cache
def composed(method: str) -> DictConfig:
    auxiliary = method if method in ("dapt", "tapt") else "dapt_tapt"
    return config_of(["encoder=tiny", "task=files", f"auxiliary={auxiliary}", f"method={method}"])


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [(method, option, value) for method, option, values in WRONG for value in values.split(" ")
     if not values.startswith("{")] + [(m, o, v) for m, o, v in WRONG if v.startswith("{")],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_before_anything_is_read(method, option, value):
    config = copy.deepcopy(composed(method))
    parsed = OverridesParser.create().parse_override(f"{option}={value}")
    OmegaConf.update(config, parsed.key_or_group, parsed.value(), merge=False, force_add=True)
    said = error_of(enabled_stages, config)
    assert option in said or (option.endswith("module") and value.lstrip("?") in said)


@pytest.mark.parametrize("group", ["weighting", "trainer", "logger", "callbacks", "auxiliary"])
def test_every_choice_of_a_group_fits_what_is_declared(group):
    for path in sorted((CONF / group).glob("*.yaml")):
        more = ["weighting.values={end_task: 1, dapt: 1, tapt: 1}"] if path.stem == "static" else []
        assert list(enabled_stages(config_of([f"{group}={path.stem}", *more]))) == ["joint"], path


def test_values_of_ones_own_stand_beside_the_options_that_refer_to_them():
    config = copy.deepcopy(composed("finetune"))
    OmegaConf.update(config, "corpus", "news", force_add=True)
    OmegaConf.update(config, "task.name", "on_${corpus}")
    OmegaConf.update(config, "trainer.deterministic", True, force_add=True)  # Lightning's own
    assert list(enabled_stages(config)) == ["finetune"]


def test_all_enabled_stages_come_in_the_methods_order_and_max_steps_caps_them():
    config = copy.deepcopy(composed("dapt_tapt"))
    config.max_steps, config.method.stages.tapt.max_steps = 5, 3
    assert [s.max_steps for s in enabled_stages(config).values()] == [5, 3, 5]
    config.method.stages.dapt.enabled = False
    assert list(enabled_stages(config)) == ["tapt", "finetune"]
    config.method.stages.finetune.enabled = False
    assert "no end task" in error_of(enabled_stages, config)


class TrainsNothing(TaskMixing):
    """A module that says nothing of what it trains."""


def test_classes_of_ones_own_have_to_be_of_the_right_kind(data_dir, cache_dir):
    for option, said in (
        ({"weighting": {"gamma": 3}}, "weighting"),
        ({"method": {"stages": {"joint": {"module": f"{__name__}.TrainsNothing"}}}}, "Nothing"),
    ):
        config = config_of(toy(data_dir, cache_dir, "mt_tartan"))
        if "weighting" in option:
            config.weighting = option["weighting"]
        else:
            config.merge_with(option)
        assert said in error_of(checked, config)


def test_adjusted_logits_take_balanced_weights_unless_others_are_given(prepared):
    adjusted = "classifier.logit_adjustment=true"
    found = [
        prepared("finetune", *more).classification.class_weights
        for more in ([adjusted], ["classifier.class_weights=balanced"], [])
    ]
    assert found[0] == found[1]
    assert found[2] is None
    given = prepared("finetune", adjusted, "classifier.class_weights=[1,2,3]").classification
    assert given.class_weights[1] == pytest.approx(2 * given.class_weights[0])
    assert "has 0 weights" in error_of(prepared, "finetune", "classifier.class_weights=[]")


def test_auxiliaries_that_no_stage_trains_are_not_read(prepared):
    nowhere = "auxiliary.dapt.path=/nowhere/corpus.txt"
    assert prepared("finetune", "auxiliary=dapt", nowhere).auxiliaries == {}
    assert list(prepared("tapt", "auxiliary=dapt_tapt", nowhere).auxiliaries) == ["tapt"]
    disabled = [nowhere, "method.stages.dapt.enabled=false"]
    assert list(prepared("dapt_tapt", *disabled).auxiliaries) == ["tapt"]
    assert "/nowhere/corpus.txt" in error_of(prepared, "dapt", nowhere)


@pytest.mark.parametrize(
    ("method", "auxiliary"),
    [("tapt", "none"), ("tapt", "dapt"), ("dapt", "tapt"), ("mt_tartan", "none")],
)
def test_a_method_without_the_auxiliary_it_needs_says_so(method, auxiliary, toy_options):
    config = config_of([*toy_options, f"method={method}", f"auxiliary={auxiliary}"])
    assert method in error_of(checked, config)


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("metrics.macro_f1.average=best", "metrics"),
        ("logger.csv._target_=no.Logger", "logger"),
        ("weighting=static weighting.values={end_task:1}", "values"),
        ("task.max_length=513", "512"),
        ("+auxiliary_task@auxiliary.end_task=mlm_task", "end_task"),
    ],
)
def test_what_only_building_shows_is_named_before_any_training(
    option, named, data_dir, cache_dir, tmp_path, monkeypatch
):
    monkeypatch.setattr("lightning.pytorch.Trainer.fit", lambda *_, **__: pytest.fail("trained"))
    config = config_of(toy(data_dir, cache_dir, "tapt_mt_tartan", *option.split(" ")))
    assert named in error_of(run_experiment, config, tmp_path)


@pytest.mark.parametrize(
    ("method", "weighting", "said"),
    [("tapt", "random", True), ("tapt", "uniform", False), ("mt_tartan", "random", False)],
)
def test_a_weighting_that_mixes_nothing_is_warned_of(method, weighting, said, prepared, caplog):
    prepared(method, f"weighting={weighting}")
    assert ("weighting is not read" in caplog.text) is said


@pytest.mark.parametrize(
    ("choice", "option", "refused"),
    [
        ("encoder=minilm", "encoder.name=roberta-base", True),
        ("encoder=tiny", "encoder.name=x", True),
        ("encoder=huggingface", "encoder.name=roberta-base", False),
        ("task=files", "task.name=mine", False),
        ("task=docstrings", "task.name=scierc", True),
        ("method=tapt", "method.name=mt_tartan", True),
    ],
)
def test_a_name_that_chooses_nothing_renames_nothing(choice, option, refused, monkeypatch):
    options = [choice, option]
    given_on_command_line(options, monkeypatch)
    if refused:
        assert option.partition("=")[0] in error_of(enabled_stages, config_of(options))
    else:
        assert enabled_stages(config_of(options))
