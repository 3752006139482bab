"""Writes and reads the checkpoints of modules, also those that anybody may have written."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lightning.fabric.utilities.data import AttributeDict
from lightning.pytorch.trainer.states import TrainerFn

from tartan.core.task_names import END_TASK
from tartan.data.given import encoder_of
from tartan.encoders.safe_loading import check_finite_weights
from tartan.errors import UserError
from tartan.methods.given_tasks import keep_heads
from tartan.methods.same_settings import (
    check_same_data,
    check_same_frozen,
    check_same_settings,
    data_settings,
)
from tartan.methods.training_step import TrainingStep

log = logging.getLogger(__name__)
_KINDS = {
    (True, True): "MTTartan",
    (True, False): "FineTuning",
    (False, True): "ContinuedPretraining",
}
"""Classes by whether they train the end task, and auxiliary tasks."""


class ShownArguments(AttributeDict):
    """A module's arguments, which show the encoder by its name when they are printed."""

    def __repr__(self) -> str:
        # without the files of its tokenizer
        return repr(AttributeDict({**self, "encoder": self["encoder"].get("name")}))


class Checkpointed(TrainingStep):
    """Writes into a checkpoint, and reads from it, all that a module is made of and has learned.

    Checkpoints hold tensors and plain values only: a module's arguments (`TaskMixing` stores them),
    its parameters and buffers, and the entry `progress`.
    """

    planned_steps: int
    """Optimiser steps of the training, once its optimiser is made."""
    stored_steps: int | None = None
    """Planned steps of the checkpoint from which the training goes on."""
    frozen_names: list[str] | None = None
    """Names of the parameters that are not trained, once the training's optimiser is made."""
    stored_frozen: list[str] | None = None
    """Those of the checkpoint from which the training goes on."""

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
                f"{checkpoint_path} is not a checkpoint of a module of tartan: it lacks the "
                "arguments that one needs"
            ) from error
        check_finite_weights(found, Path(str(checkpoint_path)))
        return found

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the state that is not in parameters and buffers."""
        checkpoint["progress"] = {
            "weights": list(self.task_weights.values()),
            "skipped": int(self.skipped),
            "processes": self.trainer.world_size,
            "planned_steps": getattr(self, "planned_steps", None),
            "frozen": self.frozen_names,
        }
        data = self.given_data()
        if data is not None:
            checkpoint["progress"]["data"] = data_settings(data)
            checkpoint["progress"]["fingerprints"] = data.prepared.fingerprints

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the state that is not in parameters and buffers.

        Raises:
            UserError: a training is to go on with other settings, or a subclass has saved too
                little.
        """
        if "progress" not in checkpoint:
            raise UserError(
                "the checkpoint has no entry 'progress': on_save_checkpoint() of the class that "
                "wrote it has to call super().on_save_checkpoint(checkpoint)"
            )
        progress = checkpoint["progress"]
        loaded_alone = self._trainer is None
        if loaded_alone:
            _check_kind(type(self), self.hparams)
            keep_heads(self.tasks, self.encoder)  # whose values Lightning loads next
        elif self.trainer.state.fn == TrainerFn.FITTING:
            self._check_same_settings(checkpoint)
            # earlier versions wrote neither
            self.stored_steps = progress.get("planned_steps")
            self.stored_frozen = progress.get("frozen")
            self.check_frozen()
        else:
            self._check_same_labels(checkpoint["hyper_parameters"]["labels"])
        self.applied.restore(progress["weights"])
        self.skipped.fill_(progress["skipped"])
        if loaded_alone:
            return
        before, now = progress["processes"], self.trainer.world_size
        if before != now:
            log.warning("stage %s continues in %s process(es), was in %s", self.stage, now, before)

    def check_frozen(self) -> None:
        """Check that the same parameters are trained as in the checkpoint, once both are known.

        Lightning restores a sharded module after it has made the optimiser, others before.

        Raises:
            UserError: others are.
        """
        if self.stored_frozen is not None and self.frozen_names is not None:
            check_same_frozen(self.stored_frozen, self.frozen_names)

    def _check_same_settings(self, checkpoint: Mapping[str, Any]) -> None:
        check_same_settings(checkpoint["hyper_parameters"], self.hparams)
        data = self.given_data()
        if data is not None:
            own = data_settings(data)
            check_same_settings(checkpoint["progress"].get("data", {}), own, tuple(own))
            if "fingerprints" in checkpoint["progress"]:  # which earlier versions did not write
                check_same_data(checkpoint["progress"]["fingerprints"], data.prepared.fingerprints)

    def _check_same_labels(self, stored: Sequence[str]) -> None:
        own = list(self.labels)
        if list(stored) != own:
            raise UserError(
                f"the checkpoint's labels are {list(stored)}, the module's {own}: evaluate "
                f"{type(self).__name__}.load_from_checkpoint(PATH) instead"
            )


def _check_kind(kind: type[Any], arguments: Mapping[str, Any]) -> None:
    """Check that a checkpoint's tasks are those that a class trains."""
    if not hasattr(kind, "trains_end_task"):
        return  # the base of them all
    names = list(arguments["tasks"])
    found = (END_TASK in names, names != [END_TASK], arguments["meta_head"] is not None)
    own = (kind.trains_end_task, kind.trains_auxiliaries, kind.has_meta_head)
    if found[:2] != own[:2] or (found[2] and not own[2]):
        fits = "MetaTartan" if found[2] else _KINDS[found[:2]]
        raise UserError(
            f"the checkpoint is of a module that trains {', '.join(names)}, which "
            f"{kind.__name__} does not; use {fits}.load_from_checkpoint(...)"
        )
