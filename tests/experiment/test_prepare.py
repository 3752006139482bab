"""What is wrong with a run is said before its first step, in one line."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

import tartan.experiment.run
from tartan import TartanData
from tartan.data.auxiliary import SETTINGS
from tartan.errors import UserError
from tartan.experiment.prepare import enabled_stages, prepare
from tartan.experiment.run import run_experiment
from tartan.methods.module import TaskMixing
from tests.in_process import config_of, given_on_command_line, toy


@pytest.fixture
def stages(data_dir, cache_dir):
    """The enabled stages of a method, by its options."""

    def call(method, *options):
        return enabled_stages(config_of(toy(data_dir, cache_dir, method, *options)))

    return call


@pytest.fixture
def prepared(data_dir, cache_dir):
    """What a method's stages share, by its options."""

    def call(method, *options):
        config = config_of(toy(data_dir, cache_dir, method, *options))
        return prepare(config, enabled_stages(config))

    return call


def error_of(call, *options) -> str:
    with pytest.raises(UserError) as caught:
        call(*options)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def test_all_enabled_stages_come_in_the_methods_order(stages):
    assert list(stages("dapt_tapt")) == ["dapt", "tapt", "finetune"]


def test_a_disabled_stage_is_left_out(stages):
    assert list(stages("dapt_tapt", "method.stages.dapt.enabled=false")) == ["tapt", "finetune"]


def test_a_weightings_file_has_to_name_a_weighting(data_dir, cache_dir):
    for node, said in (
        ({"gamma": 3}, "weighting names no class"),
        ({"_target_": "tests.experiment.test_prepare.NoWeighting"}, "is not a subclass of"),
    ):
        config = config_of(toy(data_dir, cache_dir, "mt_tartan"))
        config.weighting = node
        assert said in error_of(prepare, config, enabled_stages(config))


class NoWeighting:
    def __init__(self, task_names):
        self.task_names = task_names


class TrainsNothing(TaskMixing):
    """A module that says nothing of what it trains."""


def test_a_stages_module_has_to_say_what_it_trains(stages):
    module = f"method.stages.joint.module={__name__}.TrainsNothing"
    assert "TrainsNothing does not say what it trains" in error_of(stages, "mt_tartan", module)


def test_an_auxiliary_file_needs_none_of_the_shared_options(data_dir, cache_dir):
    config = config_of(toy(data_dir, cache_dir, "tapt"))
    config.auxiliary = {"tapt": OmegaConf.to_container(config.auxiliary.tapt)}
    assert list(prepare(config, enabled_stages(config)).auxiliaries) == ["tapt"]


def test_max_steps_caps_every_stage(stages):
    found = stages("dapt_tapt", "max_steps=5", "method.stages.tapt.max_steps=3")
    assert [stage.max_steps for stage in found.values()] == [5, 3, 5]


def test_without_max_steps_every_stage_keeps_its_own(stages):
    found = stages("tapt", "max_steps=null", "method.stages.tapt.max_steps=7")
    assert [stage.max_steps for stage in found.values()] == [7, None]


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "many", "true", "[1]"])
def test_max_steps_must_be_a_whole_number_of_at_least_1(stages, value):
    assert error_of(stages, "finetune", f"max_steps={value}").startswith("max_steps must be")


@pytest.mark.parametrize(
    "option",
    [
        "method.stages.tapt.batch_size=many",
        "method.stages.tapt.batch_size=0",
        "method.stages.tapt.patience=0",
        "method.stages.tapt.max_epochs=0",
        "method.stages.tapt.optimisation.warmup=2",
        "method.stages.tapt.optimisation.body_lr=-1",
        "+method.stages.tapt.bogus=1",
        "+method.stages.tapt.optimisation.bogus=1",
        "method.stages.tapt.module=???",
    ],
)
def test_a_bad_value_names_its_option(stages, option):
    assert option.lstrip("+").partition("=")[0] in error_of(stages, "tapt", option)


def test_a_bad_value_of_a_disabled_stage_is_an_error_too(stages):
    options = ["method.stages.tapt.enabled=false", "method.stages.tapt.batch_size=many"]
    assert "method.stages.tapt.batch_size" in error_of(stages, "tapt", *options)


def test_a_method_needs_a_stage_that_trains_the_end_task(stages):
    message = error_of(stages, "tapt", "method.stages.finetune.enabled=false")
    assert "tapt" in message
    assert "end task" in message


@pytest.mark.parametrize(
    "module",
    ["nowhere.Module", "nowhere", "tartan.methods.finetuning.Nothing", "tartan.core.task.Task"],
)
def test_a_stages_module_must_be_one_of_ours(stages, module, capsys):
    message = error_of(stages, "finetune", f"method.stages.finetune.module={module}")
    assert module in message


def test_auxiliaries_that_no_stage_trains_are_not_read(prepared):
    nowhere = "auxiliary.dapt.path=/nowhere/corpus.txt"
    assert prepared("finetune", "auxiliary=dapt", nowhere).auxiliaries == {}
    assert list(prepared("tapt", "auxiliary=dapt_tapt", nowhere).auxiliaries) == ["tapt"]
    disabled = [nowhere, "method.stages.dapt.enabled=false"]
    assert list(prepared("dapt_tapt", *disabled).auxiliaries) == ["tapt"]


def test_auxiliaries_that_a_stage_trains_are_read(prepared):
    message = error_of(prepared, "dapt", "auxiliary.dapt.path=/nowhere/corpus.txt")
    assert "/nowhere/corpus.txt" in message


@pytest.mark.parametrize(
    ("method", "there", "hint"),
    [
        ("tapt", "none", "auxiliary=tapt"),
        ("tapt", "dapt", "auxiliary=tapt"),
        ("dapt", "none", "auxiliary=dapt"),
        ("dapt", "tapt", "auxiliary=dapt"),
        ("mt_tartan", "none", "auxiliary=tapt"),
        ("meta_tartan", "none", "auxiliary=tapt"),
    ],
)
def test_a_method_without_the_auxiliary_it_needs_says_what_to_add(
    method, there, hint, toy_options, data_dir
):
    config = config_of([*toy_options, f"method={method}", f"auxiliary={there}"])
    message = error_of(prepare, config, enabled_stages(config))
    assert method in message
    assert hint in message


@pytest.mark.parametrize(("method", "missing"), [("tapt", "dapt"), ("dapt", "tapt")])
def test_one_auxiliary_is_enough_for_the_method_that_is_named_after_it(method, missing, prepared):
    assert missing not in prepared(method).auxiliaries


@pytest.mark.parametrize("name", [*SETTINGS, "end_task", "meta_gradient", "meta_head", "values"])
def test_a_command_may_call_an_auxiliary_task_what_a_program_may(name, prepared):
    with pytest.raises(UserError) as caught:
        TartanData([("a text", "a label")], auxiliaries={name: "task"})
    extra = f"+auxiliary_task@auxiliary.{name}=mlm_task"
    assert error_of(prepared, "tapt", extra) == str(caught.value)


@pytest.mark.parametrize("extra", ["+auxiliary.sizes=3", "+auxiliary.news.path=news.txt"])
def test_what_is_no_task_is_refused_with_how_to_add_one(prepared, extra):
    name = extra.removeprefix("+auxiliary.").replace("=", ".").split(".")[0]
    expected = f"auxiliary.{name} is neither a task nor one of size, seed, decontaminate"
    message = error_of(prepared, "tapt", extra)
    assert message.startswith(expected)
    assert f"+auxiliary_task@auxiliary.{name}=mlm_domain" in message


def test_auxiliary_tasks_are_chosen_as_a_list_too(toy_options, data_dir):
    path = f"auxiliary.dapt.path={data_dir}/corpus.txt"
    one, other = (
        config_of([*toy_options, choice, path, "auxiliary.size=3"]).auxiliary
        for choice in ("auxiliary=dapt_tapt", "auxiliary=[dapt,tapt]")
    )
    assert one == other
    assert list(one) == list(other)


@pytest.mark.parametrize("option", ["task.max_length", "auxiliary.tapt.max_length"])
def test_texts_cannot_be_longer_than_the_encoder_reads(prepared, option):
    message = error_of(prepared, "tapt", f"{option}=513")
    assert message.startswith(option)
    assert "512" in message
    assert prepared("tapt", f"{option}=512")


@pytest.mark.parametrize("option", ["task.max_length", "auxiliary.tapt.max_length"])
@pytest.mark.parametrize("length", [0, 7, -1])
def test_texts_cannot_be_cut_to_nothing(prepared, option, length):
    assert error_of(prepared, "tapt", f"{option}={length}").startswith(option)


def test_the_length_of_an_auxiliary_nobody_trains_does_not_matter(prepared):
    assert prepared("finetune", "auxiliary=tapt", "auxiliary.tapt.max_length=9999")


def test_an_unknown_metric_is_compared_with_the_known_ones(prepared):
    message = error_of(prepared, "finetune", "task.metric=acuracy")
    assert "task.metric=acuracy" in message
    assert "did you mean accuracy?" in message


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("micro_batch_size=0", "micro_batch_size"),
        ("micro_batch_size=many", "micro_batch_size"),
        ("evaluation_batch_size=0", "evaluation_batch_size"),
        ("evaluation_batch_size=many", "evaluation_batch_size"),
        ("classifier.dropout=1", "classifier.dropout"),
        ("task.max_length=long", "task.max_length"),
        ("seed=lucky", "seed"),
        ("auxiliary.seed=lucky", "auxiliary.seed"),
        ("auxiliary.size=0", "auxiliary.size"),
        ("auxiliary.tapt.objective.probability=0", "probability"),
        ("metrics.macro_f1.average=best", "metrics.macro_f1"),
        ("+trainer.bogus=1", "bogus"),
        ("trainer.precision=16-mixed", "trainer.precision"),
        ("trainer.devices=many", "devices"),
        ("logger.csv._target_=nowhere.Logger", "logger.csv"),
    ],
)
def test_a_bad_option_is_named_before_any_training(
    option, named, data_dir, cache_dir, tmp_path, monkeypatch
):
    def never(*args, **kwargs):
        raise AssertionError(f"training started in spite of {option}")

    # with domain text: auxiliary.seed and auxiliary.size matter for it only
    monkeypatch.setattr("lightning.pytorch.Trainer.fit", never)
    config = config_of(toy(data_dir, cache_dir, "dapt_tapt", option))
    message = error_of(run_experiment, config, tmp_path)
    assert named in message


def test_a_bad_weighting_is_found_before_any_training(data_dir, cache_dir, tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(
        tartan.experiment.run, "fit_stage", lambda *args, **kw: trained.append(kw["name"])
    )
    options = ["+stage@method.stages.first=finetune", "weighting=static"]
    config = config_of(toy(data_dir, cache_dir, "mt_tartan", *options))
    stages = config.method.stages
    config.method.stages = {"first": stages.first, "joint": stages.joint}
    assert "weighting.values" in error_of(run_experiment, config, tmp_path)
    assert trained == []


def test_domain_text_of_the_users_own_task_is_used(prepared, data_dir):
    own = ["auxiliary.dapt.path=null", f"task.domain={data_dir}/corpus.txt"]
    _, texts = prepared("dapt", *own).auxiliaries["dapt"]
    assert texts.source == f"{data_dir}/corpus.txt"


def test_a_task_without_domain_text_says_how_to_give_it(prepared):
    message = error_of(prepared, "dapt", "auxiliary.dapt.path=null")
    assert "task.domain=FILE" in message
    assert "auxiliary=tapt" in message


def test_several_named_corpora_work_beside_tapt(toy_options, data_dir):
    options = [*toy_options, "method=meta_tartan", "auxiliary=tapt"]
    for name, size in (("news", "2"), ("web", "all")):
        options += [
            f"+auxiliary_task@auxiliary.{name}=mlm_domain",
            f"auxiliary.{name}.path={data_dir}/corpus.txt",
            f"auxiliary.{name}.size={size}",
        ]
    config = config_of(options)
    found = prepare(config, enabled_stages(config)).auxiliaries
    assert list(found) == ["tapt", "news", "web"]
    sizes = {name: len(texts.rows) for name, (_, texts) in found.items()}
    assert sizes["tapt"] == 48
    assert sizes["news"] in (95, 96)  # one line of the corpus is blank
    assert sizes["web"] == 191


@pytest.fixture
def prepared_by_command(data_dir, cache_dir, monkeypatch):
    """What a method's stages share, by options that Hydra knows as the command line's."""

    def call(method, *given):
        options = toy(data_dir, cache_dir, method, *given)
        given_on_command_line(options, monkeypatch)
        config = config_of(options)
        return prepare(config, enabled_stages(config))

    return call


@pytest.mark.parametrize(
    ("method", "given", "said"),
    [
        ("tapt", ["auxiliary.size=10"], ["the run trains on no domain text"]),
        ("finetune", ["auxiliary.size=10"], ["the run trains on no domain text"]),
        ("dapt", ["auxiliary.size=2", "auxiliary.dapt.size=1"],
         ["auxiliary.dapt.size is given instead"]),
        ("dapt", ["auxiliary.size=2"], []),
        ("tapt", [], []),
    ],
)  # fmt: skip
def test_a_size_that_nothing_takes_is_warned_of(method, given, said, prepared_by_command, caplog):
    """Where the command line gives it: experiments set it for whatever tasks are chosen."""
    prepared_by_command(method, *given)
    messages = [record.getMessage() for record in caplog.records]
    assert [m for m in messages if "auxiliary.size" in m] == [
        f"auxiliary.size is not read: {why}" for why in said
    ]


@pytest.mark.parametrize(
    ("method", "weighting", "said"),
    [("tapt", "random", True), ("tapt", "uniform", False), ("mt_tartan", "random", False)],
)
def test_a_weighting_that_mixes_nothing_is_warned_of(method, weighting, said, prepared, caplog):
    prepared(method, f"weighting={weighting}")
    message = f"weighting is not read: method={method} does not mix tasks"
    assert (message in [record.getMessage() for record in caplog.records]) is said


@pytest.mark.parametrize(("method", "said"), [("meta_tartan", True), ("mt_tartan", False)])
def test_a_method_that_does_not_learn_its_weights_is_warned_of(
    method, said, prepared_by_command, caplog
):
    prepared_by_command(method, "+experiment=custom_mt", "auxiliary.size=1")
    assert ("give weighting=meta to learn the weights" in caplog.text) is said


def test_a_meta_head_on_other_examples_needs_so_many(prepared):
    rest = "method.stages.joint.meta_head.examples_from=rest"
    message = error_of(prepared, "meta_tartan", rest, "method.stages.joint.batch_size=17")
    assert message == (
        "method.stages.joint.meta_head.examples_from=rest needs 32 training examples beside each "
        "batch of 17, but there are only 48; use a smaller batch_size, or examples_from=batch"
    )
    assert prepared("meta_tartan", rest, "method.stages.joint.batch_size=16")
    assert prepared(
        "meta_tartan", rest, "method.stages.joint.batch_size=17", "weighting=uniform"
    )  # no meta head is built
