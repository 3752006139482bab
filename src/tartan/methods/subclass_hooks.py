"""Finds Lightning's hooks that a subclass overrides without effect, or without the module's own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from lightning.pytorch import Callback

NEVER_CALLED = (
    "backward", "on_before_backward", "on_after_backward", "on_before_zero_grad",
    "optimizer_zero_grad", "optimizer_step", "lr_scheduler_step", "configure_gradient_clipping",
)  # fmt: skip
"""Hooks that Lightning calls with automatic optimisation only; a module's steps are manual."""
NEED_SUPER = (
    "configure_callbacks", "configure_model", "configure_optimizers", "setup", "on_fit_start",
    "on_fit_end", "on_train_start", "on_train_batch_end", "on_save_checkpoint",
    "on_load_checkpoint", "on_validation_epoch_start", "on_validation_epoch_end",
    "on_test_epoch_start", "on_test_epoch_end", "on_predict_start", "training_step",
    "validation_step", "test_step",
)  # fmt: skip
"""Hooks in which a module does what its training, evaluation or checkpoints need."""
_KNOWN = ("tartan", "lightning")


def remarks_on_hooks(kind: type) -> Iterator[str]:
    """Yield a sentence for each hook that a subclass overrides to no effect, or without `super()`.

    Whether a hook calls the one that it overrides is judged by whether it names it.

    Args:
        kind: the class of the module.
    """
    for name in (*NEVER_CALLED, *NEED_SUPER):
        owners = [one for one in kind.__mro__ if name in vars(one)]
        owner = owners[0]
        if owner.__module__.partition(".")[0] in _KNOWN:
            continue
        if name in NEVER_CALLED:
            yield (
                f"{owner.__name__}.{name} is never called: a step computes the gradients of single "
                "tasks, with manual optimisation (docs/lightning.md lists the hooks)"
            )
        elif _is_ours(owners[1:]) and name not in _names_in(vars(owner)[name]):
            yield (
                f"{owner.__name__}.{name} does not call super().{name}(), in which the module does "
                "what it needs (docs/lightning.md lists the hooks)"
            )


def _is_ours(owners: Sequence[type]) -> bool:
    """Return whether a module's class has the hook, rather than Lightning's alone."""
    return any(owner.__module__.partition(".")[0] == "tartan" for owner in owners)


def remarks_on_callback(callback: Callback) -> Iterator[str]:
    """Yield a sentence for each hook of a callback that is never called.

    `LambdaCallback` has its hooks as attributes of the object, others of the class.
    """
    kind = type(callback)
    for name in NEVER_CALLED:
        owner = next((one for one in kind.__mro__ if name in vars(one)), object)
        is_own = owner.__module__.partition(".")[0] not in (*_KNOWN, "builtins")
        if is_own or name in vars(callback):
            yield (
                f"{kind.__name__}.{name} is never called: steps are taken with manual "
                "optimisation; on_before_optimizer_step is called, with all gradients in .grad"
            )


def _names_in(function: object) -> tuple[str, ...]:
    """Return the names of attributes that a function uses; none of what is no function."""
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return () if code is None else code.co_names
