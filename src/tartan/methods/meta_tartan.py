"""META-TARTAN: MT-TARTAN with weights learned against the validation loss (section 3.2)."""

from typing import ClassVar

from tartan.core.weighting.meta import Meta
from tartan.methods.mt_tartan import MTTartan
from tartan.methods.parts import GivenWeighting


class MetaTartan(MTTartan):
    """Joint training with task weights learned against the validation loss (Algorithm 1).

    A step of Algorithm 1, its lines numbered as in docs/algorithm.md:

    1. draw a batch of each task and `B_val`: `TaskData`'s loader makes a `StepBatch`
    2. train `phi*` on the end task's cached features: `MetaHead.fit`, from `Step.meta_gradient`
    3. `g_meta`, the gradient of the loss on `B_val` through `phi*`: `Step.meta_gradient`
    4. each task's `g_i` (`Step.gradients`), and `w_i` by its cosine with `g_meta` (`Meta.mix`)
    5. `alpha = softmax(w)` mixes the gradients: `Meta.mix`
    6. clip and update: `TaskMixing.training_step`, with the optimiser of `Optimisation`

    With a weighting that needs no meta-gradient, such as `Uniform`, this is MT-TARTAN.
    """

    has_meta_head = True
    usual_weighting: ClassVar[GivenWeighting] = Meta
