"""Errors of `build` and `typed` are one line that names the option."""

from __future__ import annotations

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from tartan.configuration.build import build, typed
from tartan.errors import UserError
from tartan.methods.stage import Stage

META = "tartan.core.weighting.meta.Meta"
FILES = "tartan.data.file_task.FileTask"


def build_error(option, node, **arguments) -> str:
    with pytest.raises(UserError) as caught:
        build(OmegaConf.create(node), option, **arguments)
    return one_line(caught)


def typed_error(**values) -> str:
    node = {"module": "tartan.methods.fine_tuning.FineTuning", "max_steps": 3, **values}
    with pytest.raises(UserError) as caught:
        typed(OmegaConf.create(node), Stage, "method.stages.finetune")
    return one_line(caught)


def one_line(caught) -> str:
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def test_build_makes_the_target_from_the_nodes_values_and_the_arguments():
    weighting = build(
        OmegaConf.create({"_target_": META, "eta": 0.5}), "weighting", task_names=["a", "b"]
    )
    assert (weighting.eta, weighting.task_names) == (0.5, ["a", "b"])


def test_built_objects_get_plain_containers():
    node = OmegaConf.create({"_target_": "builtins.dict", "inner": {"list": [1, 2]}})
    built = build(node, "option")
    assert type(built["inner"]) is dict
    assert type(built["inner"]["list"]) is list


def test_a_node_without_a_class_says_what_its_file_needs():
    message = build_error("weighting", {"gamma": 3})
    assert message.startswith("weighting names no class; its YAML file needs a line _target_: ")


def test_an_unknown_argument_is_named_with_its_option():
    message = build_error("weighting", {"_target_": META, "bogus": 1}, task_names=["a"])
    assert message.startswith("there is no option weighting.bogus")


def test_an_unknown_argument_of_a_class_of_others_is_named_with_how_to_omit_it():
    message = build_error("metrics.mine", {"_target_": "fractions.Fraction", "bogus": 1})
    assert message == (
        "there is no option metrics.mine.bogus of fractions.Fraction; leave it out (where a file "
        "sets it: '~metrics.mine.bogus')"
    )


def test_a_value_of_the_wrong_type_is_reported_under_its_option():
    message = build_error("weighting", {"_target_": META, "eta": "fast"}, task_names=["a"])
    assert message.startswith("weighting")


def test_what_the_target_itself_says_is_passed_on():
    message = build_error("weighting", {"_target_": META, "eta": -1}, task_names=["a"])
    assert message.startswith("weighting.eta must be")


def test_a_value_that_has_to_be_given_is_named():
    message = build_error("task", {"_target_": FILES, "name": "x", "train": "???"})
    assert message.startswith("task")
    assert "train" in message
    assert "issing" in message


def test_a_reference_to_nothing_is_named():
    message = build_error("task", {"_target_": FILES, "train": "${nowhere}"})
    assert message.startswith("task")
    assert "nowhere" in message


def test_a_missing_package_is_named_with_the_option_that_wants_it():
    message = build_error("logger.fancy", {"_target_": "no_such_package.Logger"})
    assert message.startswith("logger.fancy")
    assert "no_such_package" in message


def test_a_name_that_a_module_lacks_is_no_package():
    said = build_error("callbacks.mine", {"_target_": "fractions.Fractoin"})
    assert said == "callbacks.mine cannot be imported: fractions has no class Fractoin"


def test_a_list_of_hydras_is_taken_by_a_class():
    config = OmegaConf.create({"node": {"_target_": META}, "names": ["a", "b"]})
    weighting = instantiate(config.node, task_names=config.names)
    assert weighting.task_names == ["a", "b"]


def test_an_import_error_inside_a_target_is_named_with_the_option():
    node = {"_target_": "tests.configuration.test_build.raise_import_error"}
    message = build_error("logger.fancy", node)
    assert message.startswith("logger.fancy")
    assert "install fancy" in message


def raise_import_error():
    raise ModuleNotFoundError("first install fancy\nthen come back")


def test_an_error_without_a_message_is_told_by_its_kind():
    node = {"_target_": "tests.configuration.test_build.raise_silently"}
    assert build_error("option", node) == "option: RuntimeError"


def raise_silently():
    raise RuntimeError


def test_only_the_first_line_of_a_long_error_is_shown():
    node = {"_target_": "tests.configuration.test_build.raise_at_length"}
    assert build_error("option", node) == "option: first"


def raise_at_length():
    raise ValueError("first\nsecond")


def test_typed_fills_the_dataclass_and_its_parts():
    node = OmegaConf.create(
        {"module": "m", "max_steps": 3, "optimisation": {"body_lr": 1}, "meta_head": {"steps": 2}}
    )
    stage = typed(node, Stage, "method.stages.s")
    assert isinstance(stage, Stage)
    assert (stage.optimisation.body_lr, stage.meta_head.steps, stage.batch_size) == (1.0, 2, 16)


def test_typed_resolves_references():
    config = OmegaConf.create(
        {"lr": 0.5, "stage": {"module": "m", "max_steps": 1, "optimisation": {"body_lr": "${lr}"}}}
    )
    assert typed(config.stage, Stage, "stage").optimisation.body_lr == 0.5


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"batch_size": "many"}, "batch_size"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"batch_size": None}, "batch_size"),
        ({"enabled": "maybe"}, "enabled"),
        ({"bogus": 1}, "bogus"),
        ({"max_steps": "???"}, "max_steps"),
        ({"batch_size": "${nowhere}"}, "batch_size"),
        ({"optimisation": {"body_lr": "fast"}}, "optimisation.body_lr"),
        ({"optimisation": {"bogus": 1}}, "optimisation.bogus"),
        ({"optimisation": {"body_lr": "???"}}, "optimisation.body_lr"),
        ({"meta_head": {"steps": "ten"}}, "meta_head.steps"),
    ],
)
def test_a_value_that_does_not_fit_is_named_in_full(values, option):
    name = f"method.stages.finetune.{option}"
    assert typed_error(**values).startswith(
        (f"{name}: ", f"{name} must be ", f"{name} is missing", f"there is no option {name}; ")
    )


def test_a_value_where_a_group_belongs_names_the_group_it_is_in():
    assert typed_error(optimisation=3).startswith("method.stages.finetune")


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"batch_size": 0}, "method.stages.finetune.batch_size"),
        ({"max_steps": 0}, "method.stages.finetune.max_steps"),
        ({"auxiliaries": "some"}, "method.stages.finetune.auxiliaries"),
        ({"optimisation": {"warmup": 2}}, "method.stages.finetune.optimisation.warmup"),
        ({"optimisation": {"clip_norm": 0}}, "method.stages.finetune.optimisation.clip_norm"),
        ({"meta_head": {"kind": "none"}}, "method.stages.finetune.meta_head.kind"),
    ],
)
def test_a_value_out_of_range_is_named_in_full(values, option):
    # a method may have several stages: "batch_size" alone does not say where to look
    assert option in typed_error(**values)
