"""Objectives of a program's own are honoured, or refused in one line before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from tartan.data.text_auxiliary import TextAuxiliary
from tartan.errors import UserError
from tartan.methods import FineTuning, MTTartan
from tartan.methods.given_tasks import objective_node
from tartan.methods.module import TaskMixing
from tartan.methods.plain import rebuilt
from tartan.objectives.base import is_objective
from tartan.objectives.classification import Classification
from tartan.objectives.composed.objective import Composed
from tartan.objectives.composed.output import Denoise
from tartan.objectives.composed.representation import Bidirectional
from tartan.objectives.composed.transform import Transform
from tartan.objectives.masked_lm import MaskedLM
from tests.methods.lightning import toy_data, trainer


@dataclass(frozen=True)
class Options:
    share: float = 0.3
    names: tuple[str, ...] = ("a",)


@dataclass(frozen=True)
class Other:
    share: float = 0.3


@dataclass(frozen=True)
class WithOptions(MaskedLM):
    """An objective whose fields are all that a checkpoint can hold."""

    options: Options = field(default_factory=Options)
    perhaps: Options | None = None
    table: dict[str, Any] = field(default_factory=lambda: {"a": [1, (2.5, None)], "b": True})
    number: Any = field(default_factory=lambda: np.float64(0.5))


@dataclass(frozen=True)
class WithAnyOptions(MaskedLM):
    options: Any = field(default_factory=Options)


@dataclass(frozen=True)
class WithAPath(MaskedLM):
    where: Path = Path("/")
    several: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Doubled(MaskedLM):
    share: float = 0.25

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", 2 * self.share)


class Reverse(Transform):
    """A transform of somebody's own, in a module of theirs."""

    def corrupt(self, tokens, chosen, vocabulary, rng):
        return tokens[::-1].copy()


class NoDataclass:
    features = targets = owners = losses = new_head = collate = MaskedLM.collate


@dataclass(frozen=True)
class Lacking:
    features = targets = losses = collate = MaskedLM.collate


@dataclass(frozen=True)
class ListOfRows(MaskedLM):
    def collate(self, encoder, micro_batch_size, **_):
        return lambda rows, rng: list(rows)


class TrainsNothing(TaskMixing):
    pass


class TrainsNeither(TaskMixing):
    trains_end_task = trains_auxiliaries = False


@pytest.mark.parametrize("kind", [TrainsNothing, TrainsNeither])
def test_a_module_has_to_say_what_it_trains(kind, data_dir, cache_dir):
    with pytest.raises(UserError, match=f"{kind.__name__} does not say what it trains; set"):
        kind.for_data(toy_data(data_dir, cache_dir), lr=1e-3)


def test_dataclasses_come_back_as_they_were():
    given = WithOptions(options=Options(0.7, ("b", "c")), perhaps=Options())
    again = rebuilt(objective_node("a", given), is_objective, "tasks")
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
    ("objective", "line"),
    [
        (WithAPath(), "field `where` of WithAPath holds a PosixPath; a checkpoint holds numbers"),
        (WithAPath(where="/", several=[Options()]), "`several` of WithAPath holds a Options"),
        (WithAnyOptions(), "Options is not a class that can stand in field `options` of WithAny"),
        (Doubled(), "field `share` of Doubled is 0.5, and 1.0 in one that is made with it"),
        (NoDataclass(), "is no instance of a dataclass"),
        (Lacking(), r"tasks\['a'\]: .* is no instance of a dataclass with the methods"),
        (MaskedLM, "MaskedLM.* is no instance"),
    ],
)
def test_what_would_not_come_back_is_refused_before_training(objective, line):
    with pytest.raises(UserError, match=line) as caught:
        objective_node("a", objective)
    assert len(str(caught.value).splitlines()) == 1


class TiedHead(nn.Module):
    def __init__(self, embeddings):
        super().__init__()
        self.weight = embeddings.weight


@dataclass(frozen=True)
class Tied(MaskedLM):
    def new_head(self, encoder):
        return TiedHead(encoder.body.get_input_embeddings())


def test_a_head_with_a_parameter_of_the_body_is_refused(data_dir, cache_dir):
    texts = {"own": TextAuxiliary(objective=Tied(), text="task")}
    data = toy_data(data_dir, cache_dir, auxiliaries=texts)
    with pytest.raises(UserError, match="head of task own holds a parameter of the body: let loss"):
        MTTartan.for_data(data, lr=1e-3)


@pytest.mark.parametrize("weights", ["balanced", {"A": 2.0}])
def test_class_weights_are_numbers_by_then(weights, data_dir, cache_dir):
    encoder = toy_data(data_dir, cache_dir).prepared.encoder
    given = {"end_task": Classification(3, class_weights=weights)}
    with pytest.raises(UserError, match=r"class_weights=.*TartanData\(class_weights="):
        FineTuning(encoder, given, labels=["A", "R", "S"])


@pytest.mark.parametrize(
    "target",
    [f"{__name__}.Other", "tests.conftest.Nothing", "subprocess.Popen", "os.system",
     "lightning.fabric.utilities.data.AttributeDict", "tartan.methods.optimisation.Optimisation"],
)  # fmt: skip
def test_a_checkpoint_puts_no_other_class_into_a_field(target):
    damaged = objective_node("a", WithOptions())
    damaged["options"] = {"_target_": target}
    with pytest.raises(UserError, match=r"is not a class that can stand in field `options`"):
        rebuilt(damaged, is_objective, "tasks")


def test_an_objective_is_looked_at_before_the_texts_are_read(data_dir, cache_dir):
    texts = {"own": TextAuxiliary(objective=Lacking(), path="/nowhere")}
    with pytest.raises(UserError, match=r"auxiliary own: objective: Lacking.* is no instance"):
        _ = toy_data(data_dir, cache_dir, auxiliaries=texts).prepared


def test_what_collate_makes_has_to_be_a_batch(data_dir, cache_dir):
    texts = {"own": TextAuxiliary(objective=ListOfRows(), text="task")}
    data = toy_data(data_dir, cache_dir, auxiliaries=texts)
    module = MTTartan.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match=r"collate\(\) .*own.* makes a list of rows"):
        data.steps(module.batch_needs)[0]
