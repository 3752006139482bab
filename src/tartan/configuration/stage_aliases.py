"""Names the option of a stage that is meant by a name which other tools use."""

from __future__ import annotations

from collections.abc import Sequence

_RATE = ("learning rates are those", "optimisation.body_lr=2e-5")
_BATCH = ("batch sizes are those", "batch_size=32")
_EPOCHS = ("epochs are those", "max_epochs=3")
_DECAY = ("weight decay is that", "optimisation.weight_decay=0.01")

_ALIASES = {
    "lr": _RATE,
    "learning_rate": _RATE,
    "body_lr": _RATE,
    "batch_size": _BATCH,
    "train_batch_size": _BATCH,
    "per_device_train_batch_size": _BATCH,
    "epochs": _EPOCHS,
    "max_epochs": _EPOCHS,
    "num_epochs": _EPOCHS,
    "num_train_epochs": _EPOCHS,
    "weight_decay": _DECAY,
}
"""What is meant by a name, and the option below `method.stages.STAGE`, with an example's value."""
_STAGES = "method.stages."
_ABOVE = ("", "method.", _STAGES, "trainer.")
"""Where such a name is looked for, apart from a stage itself."""


def stage_option(prefix: str, name: str, stages: Sequence[str]) -> str | None:
    """Return what to use instead of an option that does not exist; None if it means none of these.

    Args:
        prefix: what stands before the option's name, with its dot.
        name: the option's name.
        stages: names of the stages that the method runs; none where they are not known.
    """
    own = prefix.removeprefix(_STAGES).partition(".")[0] if prefix.startswith(_STAGES) else ""
    if name not in _ALIASES or not (own or prefix in _ABOVE):
        return None
    what, option = _ALIASES[name]
    stages = [own] if own else stages
    stage = stages[0] if len(stages) == 1 else "STAGE"
    several = f" (STAGE: {', '.join(stages)})" if len(stages) > 1 else ""
    return f"{what} of a stage: {_STAGES}{stage}.{option}{several}"
