"""Objectives, weightings and metrics of a program's own, and how checkpoints hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tartan.core.weighting.fixed import Uniform
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.errors import UserError
from tartan.methods import FineTuning, MTTartan
from tartan.methods.parts import node_of, rebuilt
from tartan.objectives.base import is_objective
from tartan.objectives.composed import Bidirectional, Composed, Denoise, Transform
from tartan.objectives.masked_lm import MaskedLM
from tests.methods.lightning import toy_data, trainer


@dataclass(frozen=True)
class Options:
    share: float = 0.3
    names: tuple[str, ...] = ("a",)


@dataclass(frozen=True)
class WithOptions(MaskedLM):
    """An objective whose fields are all that a checkpoint can hold."""

    options: Options = field(default_factory=Options)
    perhaps: Options | None = None
    table: dict[str, Any] = field(default_factory=lambda: {"a": [1, (2.5, None)], "b": True})


class Reverse(Transform):
    """A transform of somebody's own, in a module of theirs."""

    def corrupt(self, tokens, chosen, vocabulary, rng):
        return tokens[::-1].copy()


class TiedHead(nn.Module):
    def __init__(self, embeddings):
        super().__init__()
        self.weight = embeddings.weight


@dataclass(frozen=True)
class Tied(MaskedLM):
    def new_head(self, encoder):
        return TiedHead(encoder.body.get_input_embeddings())


class WithAnOption(Uniform):
    def __init__(self, task_names, option=None):
        super().__init__(task_names)


def test_dataclasses_come_back_as_they_were():
    given = WithOptions(options=Options(0.7, ("b", "c")), perhaps=Options())
    again = rebuilt(node_of(given), is_objective)
    assert again == given
    assert type(again.options) is type(again.perhaps) is Options


def test_a_transform_of_ones_own_comes_back_from_a_checkpoint(data_dir, cache_dir, tmp_path):
    composed = Composed(Reverse(probability=0.4), Bidirectional(), Denoise())
    texts = {"own": TextAuxiliary(objective=composed, text="task")}
    data = toy_data(data_dir, cache_dir, auxiliaries=texts)
    module = MTTartan.for_data(data, lr=1e-3)
    running = trainer(tmp_path, max_steps=1)
    running.fit(module, datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    again = MTTartan.load_from_checkpoint(tmp_path / "here.ckpt")
    assert again.tasks[1].objective == composed
    assert isinstance(again.tasks[1].objective.transform, Reverse)


@pytest.mark.parametrize(
    "target",
    ["os.system", "builtins.eval", "subprocess.Popen", "torch.nn.Linear", "torch.hub.load",
     "transformers.AutoModel.from_pretrained", "tartan.encoders.pretrained.local_or_cached",
     "tartan.core.weighting.meta.Nothing", "", "Meta", "tests.conftest.Nothing",
     "lightning.fabric.utilities.data.AttributeDict", "hydra.conf.HydraConf"],
)  # fmt: skip
def test_a_checkpoint_names_no_other_classes_than_it_may_nor_in_a_field(target):
    node = {"_target_": target}
    for damaged, is_kind in (
        (node, lambda kind: issubclass(kind, Uniform)),
        (node_of(WithOptions()) | {"options": node}, is_objective),
    ):
        with pytest.raises(UserError, match="not a class that can stand here"):
            rebuilt(damaged, is_kind)
    with pytest.raises(UserError, match="not a class that can stand here"):
        rebuilt({"_target_": "tartan.methods.optimisation.Optimisation"}, is_objective)


@pytest.mark.parametrize("value", [Path("/"), [torch.nn], {"a": Options()}])
def test_arguments_that_a_checkpoint_cannot_hold_are_refused(value, data_dir, cache_dir):
    weighting = partial(WithAnOption, option=value)
    with pytest.raises(UserError, match="cannot be stored in a checkpoint"):
        MTTartan.for_data(toy_data(data_dir, cache_dir), lr=1e-3, weighting=weighting)


def test_a_head_with_a_parameter_of_the_body_is_refused(data_dir, cache_dir):
    texts = {"own": TextAuxiliary(objective=Tied(), text="task")}
    data = toy_data(data_dir, cache_dir, auxiliaries=texts)
    with pytest.raises(UserError, match="head of task own holds a parameter of the body"):
        MTTartan.for_data(data, lr=1e-3)


def test_a_metric_may_be_named_by_the_module_that_defines_it(data_dir, cache_dir):
    data = toy_data(data_dir, cache_dir)
    own = {"_target_": "torchmetrics.classification.accuracy.MulticlassAccuracy"}
    module = FineTuning.for_data(data, lr=1e-3, metrics={"own": own})
    assert module.metrics.modes["own"] == "max"
    with pytest.raises(UserError, match="logged as `loss`"):
        FineTuning.for_data(data, lr=1e-3, metrics={"loss": own})
    bleu = {"_target_": "torchmetrics.text.BLEUScore"}
    with pytest.raises(UserError, match="not a class"):
        FineTuning.for_data(data, lr=1e-3, metrics={"own": bleu})
