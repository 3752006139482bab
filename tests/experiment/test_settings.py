"""Options are checked by their declared types before anything is read; one line says what fits."""

from __future__ import annotations

import copy
from functools import cache

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError
from tartan.experiment.known_options import check_top_level
from tartan.experiment.prepare import enabled_stages
from tests.in_process import CONF, config_of

STAGE, OBJECTIVE = "method.stages.finetune", "auxiliary.tapt.objective"
OPTIMISATION, META_HEAD = f"{STAGE}.optimisation", "method.stages.joint.meta_head"

NATURAL, COUNT = "a whole number of at least 0", "a whole number of at least 1"
RATES = "finite numbers of at least 0"
LENGTH, BATCH = "a whole number of at least 8", "a whole number from 1 to 1048576"
RATE, POSITIVE = "a finite number of at least 0", "a finite number above 0"
BELOW_1, FRACTION, SHARE = "a number in [0, 1)", "a number in [0, 1]", "a number in (0, 1]"
PART, TEMPERATURE = "a number in (0, 1)", "a number above 0"
SWITCH, SIZE = "true or false", f"{POSITIVE} or all"
PRECISION = "auto, bf16-mixed, 32-true or 64-true"

NONE_BUT_NULL = "x 1.5 true nan"
ALL = f"{NONE_BUT_NULL} null"

CASES = [
    ("finetune", "seed", NATURAL, f"-1 {ALL}"),
    ("dapt", "auxiliary.seed", NATURAL, f"-1 {ALL}"),
    ("finetune", "micro_batch_size", COUNT, f"0 {ALL}"),
    ("finetune", "evaluation_batch_size", COUNT, f"0 {ALL}"),
    ("finetune", "non_finite_patience", COUNT, f"0 {ALL}"),
    ("finetune", "max_steps", f"{COUNT} or null", f"0 {NONE_BUT_NULL}"),
    (
        "finetune",
        "num_workers",
        "a whole number from 0 to 256 or null",
        f"-1 100000 {NONE_BUT_NULL}",
    ),
    ("finetune", "packed", SWITCH, "maybe"),
    ("finetune", "checkpoint_minutes", RATE, "-1 x nan inf null"),
    ("finetune", "resume", SWITCH, "maybe"),
    ("finetune", "evaluate_test", SWITCH, "1"),
    ("finetune", "gradient_checkpointing", SWITCH, "often"),
    ("finetune", "cache_dir", "non-empty text", "null ''"),
    ("dapt", "auxiliary.size", SIZE, "0 -1 ten inf nan null [1] true"),
    ("dapt", "auxiliary.decontaminate", SWITCH, "maybe"),
    ("dapt", "auxiliary.dapt.size", f"{POSITIVE}, all or null", "0"),
    ("dapt", "auxiliary.dapt.text", "task or domain", "both"),
    ("dapt", "auxiliary.dapt.select", "random or nearest", "first"),
    ("tapt", "auxiliary.tapt.max_length", f"{LENGTH} or null", "x 7"),
    ("tapt", f"{OBJECTIVE}.probability", SHARE, "0 1.1 nan x"),
    ("tapt", f"{OBJECTIVE}.masked", FRACTION, "-0.1 nan"),
    ("tapt", OBJECTIVE, "an object (TaskObjective)", "masked_lm"),
    ("finetune", "task", "a mapping of options", "null"),
    ("finetune", "task.train", "text or null", "5"),
    ("finetune", "task.max_length", LENGTH, "7 -1 long 16.5 null true"),
    ("finetune", "task.dev_share", PART, "1 0 half"),
    ("finetune", "task.split_seed", NATURAL, "-1"),
    ("finetune", "task.split", "published or clean", "random"),
    ("finetune", "task.labelled", f"{COUNT} or null", "0 1.5"),
    ("finetune", f"{STAGE}.batch_size", BATCH, "0 -1 x 1.5 nan 1000000000000"),
    ("finetune", f"{STAGE}.meta_batch_size", BATCH, "0 -1 x 1.5 nan"),
    ("finetune", f"{STAGE}.max_steps", f"{COUNT} or null", "0 -1 x 1.5 nan"),
    ("finetune", f"{STAGE}.evaluate_every", f"{COUNT} or null", "0 -1 x 1.5 nan"),
    ("finetune", f"{STAGE}.patience", f"{COUNT} or null", "0 -1 x 1.5 nan"),
    ("finetune", f"{STAGE}.sampled", f"{COUNT} or null", "0"),
    ("finetune", f"{STAGE}.max_epochs", f"{POSITIVE} or null", "0 -1 inf nan"),
    ("finetune", f"{STAGE}.enabled", SWITCH, "maybe"),
    ("finetune", f"{STAGE}.freeze_body", SWITCH, "5"),
    ("finetune", f"{STAGE}.auxiliaries", "all, domain or task", "some"),
    ("finetune", f"{STAGE}.epochs_of", "end_task or largest", "smallest"),
    ("finetune", OPTIMISATION, "a mapping of options", "adam"),
    ("finetune", f"{OPTIMISATION}.body_lr", RATE, "-1 inf nan x null true"),
    ("finetune", f"{OPTIMISATION}.end_head_lr", RATE, "-1 inf nan x null true"),
    ("finetune", f"{OPTIMISATION}.weight_decay", RATE, "-1 inf nan"),
    ("finetune", f"{OPTIMISATION}.eps", RATE, "-1 inf nan"),
    ("finetune", f"{OPTIMISATION}.beta1", BELOW_1, "1 -0.1 nan x"),
    ("finetune", f"{OPTIMISATION}.beta2", BELOW_1, "1 -0.1 nan x"),
    ("finetune", f"{OPTIMISATION}.warmup", FRACTION, "2 -0.1 nan x"),
    ("finetune", f"{OPTIMISATION}.decay", "linear or constant", "cosine"),
    ("finetune", f"{OPTIMISATION}.clip_norm", f"{POSITIVE} or null", "0 inf nan"),
    ("meta_tartan", f"{META_HEAD}.lr", RATE, "-1 inf nan x null true"),
    ("meta_tartan", f"{META_HEAD}.weight_decay", RATE, "-1 inf nan"),
    ("meta_tartan", f"{META_HEAD}.examples", COUNT, "0 1.5"),
    ("meta_tartan", f"{META_HEAD}.steps", NATURAL, "-1 1.5"),
    ("meta_tartan", f"{META_HEAD}.tolerance", f"{BELOW_1} or null", "1 nan"),
    ("meta_tartan", f"{META_HEAD}.kind", "separate or shared", "both"),
    ("meta_tartan", f"{META_HEAD}.examples_from", "batch or rest", "dev"),
    ("meta_tartan", "weighting.eta", RATE, "-1 inf nan fast null true"),
    ("meta_tartan", "weighting.order", "update_then_step or step_then_update", "never"),
    ("finetune", "classifier.dropout", BELOW_1, "1 -0.1 nan x"),
    ("finetune", "encoder.hidden_size", "a whole number of at least 2, a multiple of 2", "33"),
    ("finetune", "encoder.layers", COUNT, "0"),
    ("finetune", "encoder.dropout", BELOW_1, "2"),
    ("finetune", "trainer.log_every_n_steps", f"{NATURAL} or null", "-1"),
    ("finetune", "trainer.enable_progress_bar", SWITCH, "maybe"),
    ("finetune", "trainer.precision", PRECISION, "fp16 null"),
    ("finetune", "trainer.strategy", "auto, single_device, ddp or fsdp", "deepspeed"),
]
"""Method, option, what it has to be, and values that it cannot have."""
WITH_CHOICES = [
    ("weighting=dwa", "weighting.temperature", TEMPERATURE, "0 -1 nan x"),
    ("weighting=dwa", "weighting.window", COUNT, "0 2.5 x"),
    ("weighting=uncertainty", "weighting.lr", RATE, "-1 nan inf x"),
    ("weighting=meta_examples", "weighting.temperature", TEMPERATURE, "0 nan"),
    (
        "weighting=static",
        "weighting.values",
        "a mapping of names to finite numbers of at least 0",
        "5",
    ),
    ("classifier=images", "classifier.shift", NATURAL, "-1"),
    ("classifier=images", "classifier.flip", SWITCH, "often"),
    ("task=digits", "task.train_per_class", COUNT, "0"),
    ("encoder=huggingface", "encoder.hidden_dropout", f"{BELOW_1} or null", "2"),
]
"""The same, with an override that comes before; trained by META-TARTAN."""


@cache
def composed(method: str, before: str = "") -> DictConfig:
    auxiliary = method if method in ("dapt", "tapt") else "dapt_tapt"
    own = ["encoder=tiny", "task=files", f"auxiliary={auxiliary}", f"method={method}"]
    return config_of([*own, *filter(None, [before])])


def message(override: str, *of: str) -> str:
    """What is said of a config in which one option is another."""
    config = copy.deepcopy(composed(*of))
    parsed = OverridesParser.create().parse_override(override)
    OmegaConf.update(config, parsed.key_or_group, parsed.value(), merge=False, force_add=True)
    with pytest.raises(UserError) as caught:
        enabled_stages(config)
    said = str(caught.value)
    assert "\n" not in said
    return said


def shown(value: str) -> str:
    is_text = value[0].isalpha() and value not in ("true", "null", "nan", "inf")
    return repr(value) if is_text else value


def cases(table):
    return [
        pytest.param(of, option, must, value, id=f"{of} {option}={value}")
        for of, option, must, values in table
        for value in values.split()
    ]


@pytest.mark.parametrize(("method", "option", "must", "value"), cases(CASES))
def test_a_value_that_does_not_fit_is_named_with_what_would(method, option, must, value):
    assert message(f"{option}={value}", method) == f"{option} must be {must}, got {shown(value)}"


@pytest.mark.parametrize(("before", "option", "must", "value"), cases(WITH_CHOICES))
def test_so_is_one_of_an_other_choice(before, option, must, value):
    said = message(f"{option}={value}", "meta_tartan", before)
    assert said == f"{option} must be {must}, got {shown(value)}"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("{end_task: 1, dapt: much, tapt: 1}", "'much'"),
        ("{end_task: 1, dapt: -1, tapt: 1}", "-1"),
    ],
)
def test_an_entry_of_a_mapping_is_named(values, said):
    found = message(f"weighting.values={values}", "mt_tartan", "weighting=static")
    assert found == f"weighting.values.dapt must be {RATE}, got {said}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("sede=1", "there is no option sede; did you mean seed?"),
        (
            "method.stages.finetune.bach_size=8",
            "there is no option method.stages.finetune.bach_size; did you mean "
            "method.stages.finetune.batch_size?",
        ),
        (
            "task.trian=t.jsonl",
            "there is no option task.trian; did you mean task.train?",
        ),
        (
            "auxiliary.dapt.objective.probabilty=0.2",
            "there is no option auxiliary.dapt.objective.probabilty; did you mean "
            "auxiliary.dapt.objective.probability?",
        ),
        (
            "trainer.precision=16-mixed",
            f"trainer.precision must be {PRECISION}, got '16-mixed'; did you mean bf16-mixed?",
        ),
        (
            "method.stages.finetune.inner_products=float16",
            "method.stages.finetune.inner_products must be float32 or float64, got 'float16'; "
            "did you mean float64?",
        ),
        ("seed=${nowhere}", "seed: Interpolation key 'nowhere' not found"),
    ],
)
def test_what_is_like_an_option_or_a_choice_is_named(override, said):
    assert message(override, "dapt") == said


@pytest.mark.parametrize("group", ["weighting", "trainer", "logger", "callbacks", "auxiliary"])
def test_every_choice_of_a_group_fits_what_is_declared(group):
    for path in sorted((CONF / group).glob("*.yaml")):
        assert list(enabled_stages(config_of([f"{group}={path.stem}"]))) == ["joint"], path


def test_values_of_ones_own_stand_beside_the_options():
    config = copy.deepcopy(composed("finetune"))
    OmegaConf.update(config, "corpus", "news", force_add=True)
    OmegaConf.update(config, "task.name", "on_${corpus}")
    assert list(enabled_stages(config)) == ["finetune"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("experiment", 'of experiment/ needs the line "# @package _global_" as its first line'),
        ("hparams", "there is no option hparams, and no option refers to it"),
        ("hparams_search", "there is no option hparams_search; use -m +search=NAME"),
    ],
)
def test_options_that_no_run_reads_are_refused(name, said):
    config = copy.deepcopy(composed("finetune"))
    OmegaConf.update(config, name, {"max_steps": 3}, force_add=True)
    assert list(enabled_stages(config)) == ["finetune"]
    with pytest.raises(UserError) as caught:
        check_top_level(config)
    assert said in str(caught.value)
    OmegaConf.update(config, "task.name", f"of_${{{name}.max_steps}}")
    check_top_level(config)


def test_a_value_that_nothing_refers_to_is_warned_of(caplog):
    config = copy.deepcopy(composed("finetune"))
    OmegaConf.update(config, "corpus", "news", force_add=True)
    check_top_level(config, beside=["corpus"])
    assert not caplog.text
    check_top_level(config)
    assert "no option corpus, and no option refers to it" in caplog.text


def test_options_of_other_libraries_are_left_to_them():
    config = copy.deepcopy(composed("finetune"))
    OmegaConf.update(config, "trainer.deterministic", True, force_add=True)
    assert list(enabled_stages(config)) == ["finetune"]
