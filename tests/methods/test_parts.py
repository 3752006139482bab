"""Parts of a program's own are honoured, or refused in one line before anything is trained."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from src.core.mixture import Mixed, weighted_mean
from src.core.step import Step
from src.core.weighting.base import Weighting
from src.errors import UserError
from src.methods.parts import weighting_of

NAMES = ["end_task", "tapt"]


class WithAParameter(Weighting):
    """A weighting with logits that no optimiser knows."""

    def __init__(self, task_names: list[str]) -> None:
        super().__init__(task_names)
        self.logits = nn.Parameter(torch.zeros(len(task_names)))

    def mix(self, step: Step) -> Mixed:
        return weighted_mean(step.gradients(), self.logits.softmax(0))


def node(kind: type, **arguments: object) -> dict[str, object]:
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **arguments}


def test_a_weighting_with_a_parameter_is_refused():
    line = "weighting WithAParameter has a parameter 'logits', which no optimiser trains"
    with pytest.raises(UserError, match=line):
        weighting_of(node(WithAParameter), NAMES)
