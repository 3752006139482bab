"""META-TARTAN: weights that are learned online against the end task's validation loss."""

from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt, Lt
from torch import Tensor

from tartan.core.body import cosine
from tartan.core.mixture import Mixed, RunningMean
from tartan.core.step import Step
from tartan.core.weighting.base import Needs, Weighting
from tartan.core.weighting.fixed import shares_of

Eta = Annotated[float, Ge(0)]
Order = Literal["update_then_step", "step_then_update"]
Start = Annotated[float, Gt(0), Lt(1)] | None


class Meta(Weighting):
    """`alpha = softmax(w)`, `w_i <- w_i + eta * cos(g_meta, g_i)` (paper, Algorithm 1, equation 7).

    Args:
        task_names: names of the tasks, the end task first.
        eta: learning rate of the logits `w` (the paper searches 1e-1, 5e-2, 3e-2, 1e-2).
        order: `update_then_step` mixes with the new weights (Algorithm 1); `step_then_update`
            mixes with the old ones and updates them afterwards (section 3.2's wording).
        start: the end task's weight before the first step, the others sharing the rest equally;
            None for equal weights, as in the paper.
    """

    needs = Needs(meta_gradient=True)
    logits: Tensor

    def __init__(
        self,
        task_names: list[str],
        eta: Eta = 0.05,
        order: Order = "update_then_step",
        start: Start = None,
    ) -> None:
        super().__init__(task_names)
        self.eta = eta
        self.update_first = order == "update_then_step"  # Algorithm 1; else section 3.2
        count = len(task_names)
        # Algorithm 1 starts every logit at 1 / (n + 1); any equal start gives equal weights.
        logits = torch.full((count,), 1.0 / count)
        if start is not None:
            logits = torch.tensor(shares_of(count, start)).log()
        self.register_buffer("logits", logits)

    def mix(self, step: Step) -> Mixed:
        """Take one step of Algorithm 1, up to the optimiser's update (lines 2 to 5).

        Each gradient is added as soon as it is computed: with `bound`, which no new logit exceeds,
        `exp(w_i - bound)` is proportional to task `i`'s share of the softmax, and a running mean
        needs no more than that. So memory does not grow with the number of tasks.
        """
        w, eta = self.logits, self.eta
        g_meta = step.meta_gradient()  # fits phi*, then differentiates the loss on B_val
        bound = w.max() + (eta if self.update_first else 0.0)
        mean, cosines, new = RunningMean(), [], []
        for i, g in enumerate(step.gradients()):  # the body's; each head keeps its own gradient
            cosines.append(cosine(g_meta, g))
            new.append(w[i] + eta * cosines[i].to(w.dtype))
            # divided by their sum in the mean, these are alpha = softmax(w)
            mean.add(g, ((new[i] if self.update_first else w[i]) - bound).exp())
        w.copy_(torch.stack(new))
        return mean.mixed(torch.stack(cosines))
