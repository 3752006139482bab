"""META-TARTAN: MT-TARTAN with weights learned against the validation loss (section 3.2)."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from tartan.core.weighting.meta import Meta
from tartan.methods.module import TaskMixing
from tartan.methods.parts import GivenWeighting


class MetaTartan(TaskMixing):
    """Joint training with task weights learned against the validation loss (Algorithm 1).

    `TrainingStep.training_step` takes a step, in which `Meta.mix` asks a `Step` for the gradients.
    The lines of Algorithm 1, numbered as in docs/algorithm.md, are in:

    - line 1, a batch of each task and `B_val`: `TartanData`'s loader, which makes a `StepBatch`
    - line 2, `phi*`: `MetaHead.fit`, from `Step.meta_gradient`
    - line 3, `g_meta`: `Step.meta_gradient`
    - line 4.1, each `g_i`: `Passes.gradient`, from `Step.gradients`
    - line 4.2, `w_i` by its cosine, and line 5, `alpha`: `Meta.mix`
    - line 6, the update: `TrainingStep.training_step`, with the optimiser of `Optimisation`

    With a weighting that needs no meta-gradient, such as `Uniform`, there is no meta head, and this
    is MT-TARTAN with that weighting.
    """

    trains_end_task = True
    trains_auxiliaries = True
    has_meta_head = True
    usual_weighting: ClassVar[GivenWeighting] = partial(Meta, eta=0.05)
