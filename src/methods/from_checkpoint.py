"""Modules that come out of a checkpoint, which may be a stranger's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import lightning.pytorch as pl

from src.encoders.pretrained import check_finite_weights


class FromCheckpoint(pl.LightningModule):
    """A module whose checkpoints are read as tensors and plain values only."""

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *args: Any, **kwargs: Any) -> Self:
        """Make the module that a checkpoint holds.

        Of an address (`https://...`) Lightning would otherwise unpickle anything, and have the
        module made by the function that a checkpoint names as `_instantiator`.

        Args:
            checkpoint_path: file or address.
            args: as of Lightning's own method.
            kwargs: the same; or arguments of the class, instead of those that are stored.

        Raises:
            UserError: a weight is not finite, or an argument is damaged.
            pickle.UnpicklingError: the checkpoint holds other objects.
        """
        plain: dict[str, Any] = {**kwargs, "weights_only": True, "_instantiator": None}
        found: Self = super().load_from_checkpoint(checkpoint_path, *args, **plain)
        check_finite_weights(found, Path(str(checkpoint_path)))
        return found
