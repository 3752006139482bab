"""Continued pre-training: DAPT and TAPT (Gururangan et al., 2020)."""

from pathlib import Path
from typing import Any

from tartan.core.task import MicroBatch
from tartan.encoders.export import save_masked_lm
from tartan.encoders.text_encoder import require_text_encoder
from tartan.evaluation.stage_result import PERPLEXITY, Monitor
from tartan.methods.module import TaskMixing
from tartan.methods.parts import keep_heads


class ContinuedPretraining(TaskMixing):
    """Trains body and auxiliary heads on unlabelled text, without the end task.

    Before a stage with the end task, it trains for its whole budget, without early stopping, and
    its last weights feed the next stage. With `held_out`, texts that are read as its first task's
    are, it logs `dev/perplexity`, by which its checkpoint is chosen, and `dev/loss`.
    """

    trains_end_task = False
    trains_auxiliaries = True
    stage_name = "pretrain"
    usual_weight_decay = 0.01

    def __init__(self, *args: Any, held_out: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hparams["held_out"] = self._held_out = held_out

    @property
    def monitor(self) -> Monitor | None:
        return Monitor(PERPLEXITY) if self._held_out else None

    def validation_step(self, batch: MicroBatch, batch_idx: int, dataloader_idx: int = 0) -> None:
        task = self.tasks[0]
        features = task.objective.features(self.body, batch.inputs)
        targets = task.objective.targets(batch.inputs)
        losses = task.objective.losses(self.body, task.head, features, targets)
        self.evaluation_loss.update(losses.mean(), batch.units)

    def on_validation_epoch_end(self) -> None:
        loss = self.evaluation_loss.compute()
        self._log_values("dev", {"loss": loss, PERPLEXITY: loss.exp()}, PERPLEXITY)

    def on_fit_end(self) -> None:
        """Store the trained masked-LM head in the encoder, where later tasks start from it."""
        keep_heads(self.tasks, self.encoder)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the encoder for `AutoModelForMaskedLM` and `encoder=`; all processes call this."""
        tokenizer = require_text_encoder(self.encoder, "continued pre-training").tokenizer
        head = self.tasks[0].head
        self._in_main(
            lambda encoder: save_masked_lm(
                require_text_encoder(encoder, "").body, head, tokenizer, Path(folder)
            )
        )
