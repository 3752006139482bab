"""Loads modules from checkpoints that anybody may have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import lightning.pytorch as pl

from src.encoders.pretrained import check_finite_weights
from src.errors import UserError


class FromCheckpoint(pl.LightningModule):
    """A module whose checkpoints are read as tensors and plain values only."""

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *args: Any, **kwargs: Any) -> Self:
        """Return the module that a checkpoint holds.

        From an address (`https://...`) Lightning would unpickle anything, and would build the
        module with the function that the checkpoint names as `_instantiator`; this does neither.

        Args:
            checkpoint_path: file or address.
            args: as in Lightning's own method.
            kwargs: as in Lightning's own method; or arguments of the class that replace the stored
                ones.

        Raises:
            UserError: a weight is not finite, an argument is damaged, or the checkpoint is that of
                another module.
            pickle.UnpicklingError: the checkpoint holds other objects than tensors and plain
                values.
        """
        plain: dict[str, Any] = {**kwargs, "weights_only": True, "_instantiator": None}
        try:
            found: Self = super().load_from_checkpoint(checkpoint_path, *args, **plain)
        except TypeError as error:
            if "missing" not in str(error):
                raise
            raise UserError(
                f"{checkpoint_path} is no checkpoint of a module of src.methods: it has not the "
                "arguments that one needs"
            ) from error
        check_finite_weights(found, Path(str(checkpoint_path)))
        return found
