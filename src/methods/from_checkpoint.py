"""Loads modules from checkpoints that anybody may have written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import lightning.pytorch as pl

from src.data.given import encoder_of
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
                ones. `encoder` may be in any form that `TartanData` takes.

        Raises:
            UserError: a weight is not finite, an argument is damaged or unknown, or the checkpoint
                is that of another module, or none.
            pickle.UnpicklingError: the checkpoint holds other objects than tensors and plain
                values.
        """
        if "encoder" in kwargs and not isinstance(kwargs["encoder"], Mapping):
            kwargs["encoder"] = encoder_of(kwargs["encoder"])
        plain: dict[str, Any] = {**kwargs, "weights_only": True, "_instantiator": None}
        try:
            found: Self = super().load_from_checkpoint(checkpoint_path, *args, **plain)
        except (IndexError, EOFError) as error:
            raise UserError(f"{checkpoint_path} is not a checkpoint, or is damaged") from error
        except TypeError as error:
            if "unexpected keyword" in str(error):
                raise UserError(
                    f"{error}; arguments are those of {cls.__name__}, for instance "
                    "optimisation=Optimisation(...) for rates"
                ) from error
            if "missing" not in str(error):
                raise
            raise UserError(
                f"{checkpoint_path} is not a checkpoint of a module of src.methods: it lacks the "
                "arguments that one needs"
            ) from error
        check_finite_weights(found, Path(str(checkpoint_path)))
        return found
