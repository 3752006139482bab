"""Logs losses and weights to a CSV and to loggers, without waiting for the device."""

from __future__ import annotations

import csv
import io
import logging
import os
import zlib
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor

from tartan.errors import UserError
from tartan.files import write_durably
from tartan.methods.module import TaskMixing

log = logging.getLogger(__name__)

OF_A_TASK = {
    "weight": "weights", "cosine": "cosines", "loss": "losses", "gradient_norm": "gradient_norms",
    "effective_examples": "effective_examples",
}  # fmt: skip
"""Columns with a task's value, and where a `StepRecord` has those of all tasks."""
OF_A_STEP = ("meta_loss", "meta_head_loss", "skipped")
COLUMNS = ("stage", "step", "task", *OF_A_TASK, *OF_A_STEP)
"""Columns of the step log, which has a row for each step and task."""
_COPY = "step_log"
"""Key of the compressed copy of the log in a checkpoint."""
_LARGEST = 1 << 30
"""Maximum size of a log in a checkpoint: some ten million rows [bytes]."""
_ANEW = "start over with resume=false"


class StepLog(pl.Callback):
    """Collects each step's record without waiting for the device, and writes them at intervals.

    The CSV gets every step's, its steps counted from 1; the Trainer's loggers get those that
    `log_every_n_steps` asks for, counted from 0 as Lightning counts.

    A checkpoint contains a copy of the log. A resumed stage restores the log from it, whatever
    happened to the file since, so that the log of an interrupted run is the same as that of any
    other.

    Args:
        file: the step log, to which every stage appends.
        stage: the stage's name.
        flush_every: number of steps between two writings.
    """

    def __init__(self, file: str | Path, stage: str, flush_every: int) -> None:
        self._file, self._stage, self._flush_every = Path(file), stage, flush_every
        self._pending: list[tuple[int, tuple[str, ...], dict[str, Tensor]]] = []
        self._content = b""
        """The file's content, in the main process."""
        self._restored: bytes | None = None

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Take over the log from a checkpoint."""
        if _COPY in checkpoint:
            self._restored = _unpacked(checkpoint[_COPY].numpy().tobytes())

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Drop the rows of steps that will be repeated, and connect to the loggers."""
        assert isinstance(pl_module, TaskMixing)
        pl_module.logs_steps = False
        if not trainer.is_global_zero:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if self._restored is None:
            self._content = rows_before(read_log(self._file), self._stage)
        else:
            self._content = self._restored
        put_back(self._file, self._content)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any
    ) -> None:
        """Store the step's record."""
        assert isinstance(pl_module, TaskMixing)
        record = pl_module.last_record
        if record is None:
            return
        finite = pl_module.last_finite
        scalars = {
            "meta_loss": record.meta_loss,
            "meta_head_loss": record.meta_head_loss,
            "skipped": None if finite is None else ~finite,
        }
        values = {
            f"{kind}/{task}": vector[index]
            for kind, name in OF_A_TASK.items()
            if (vector := getattr(record, name)) is not None
            for index, task in enumerate(record.tasks)
        }
        values |= {name: value for name, value in scalars.items() if value is not None}
        self._pending.append((trainer.global_step, record.tasks, values))
        if len(self._pending) >= self._flush_every:
            self._flush(trainer)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the stored records, so that the log is complete at each evaluation."""
        if isinstance(pl_module, TaskMixing) and not trainer.sanity_checking:
            self._flush(trainer)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Write the stored records, and add a copy of the log to the checkpoint."""
        self._flush(trainer)
        if trainer.is_global_zero:
            packed = bytearray(zlib.compress(self._content, level=1))
            checkpoint[_COPY] = torch.frombuffer(packed, dtype=torch.uint8)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the remaining records."""
        self._flush(trainer)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Write the remaining records where training itself ended: they show what went wrong."""
        if isinstance(exception, UserError):
            self._flush(trainer)

    def _flush(self, trainer: pl.Trainer) -> None:
        if not self._pending:
            return
        # steps need not have the same tasks; one transfer from the device for all numbers
        numbers = iter(
            torch.stack([v.float() for _, _, values in self._pending for v in values.values()])
            .flatten()
            .tolist()
        )
        rows = [
            (step, tasks, {name: next(numbers) for name in values})
            for step, tasks, values in self._pending
        ]
        self._pending.clear()
        every = trainer.log_every_n_steps  # type: ignore[attr-defined]
        for step, _, values_of_step in rows if every else ():
            if step % every == 0:
                for logger in trainer.loggers:
                    logger.log_metrics(values_of_step, step - 1)  # as Lightning counts
        if trainer.is_global_zero:
            self._append(rows)

    def _append(self, rows: list[tuple[int, tuple[str, ...], dict[str, float]]]) -> None:
        new = io.StringIO(newline="")
        writer = csv.writer(new, lineterminator="\n")
        if not self._content:
            writer.writerow(COLUMNS)
        for step, tasks, values in rows:
            of_step = [_cell(values.get(kind)) for kind in OF_A_STEP]
            for task in tasks:
                of_task = [_cell(values.get(f"{kind}/{task}")) for kind in OF_A_TASK]
                writer.writerow([self._stage, step, task, *of_task, *of_step])
        added = new.getvalue().encode()
        if not self._file.exists() or self._file.stat().st_size != len(self._content):
            put_back(self._file, self._content)
        with self._file.open("ab") as file:
            file.write(added)
            file.flush()
            os.fsync(file.fileno())
        self._content += added


def _unpacked(packed: bytes) -> bytes:
    """Return the log in a checkpoint.

    Raises:
        UserError: it is damaged or too long.
    """
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(packed, _LARGEST)
    except zlib.error as error:
        raise UserError(f"the step log in the checkpoint is damaged ({error}); {_ANEW}") from error
    if not unpacking.eof:
        raise UserError(f"the step log in the checkpoint is cut, or too long; {_ANEW}")
    return content


def _cell(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


def read_log(path: Path) -> bytes:
    """Return the step log's content; empty if there is none."""
    return path.read_bytes() if path.is_file() else b""


def put_back(path: Path, content: bytes) -> None:
    """Restore the step log to `content`; warn if rows of it were lost from the file.

    Later rows, of steps after the last checkpoint, are dropped without a warning.
    """
    found = read_log(path)
    if found == content:
        return
    if not found.startswith(content):
        log.warning("%s has been changed; its rows are put back", path)
    write_durably(path, lambda scratch: scratch.write_bytes(content))


def rows_before(content: bytes, stage: str) -> bytes:
    """Return the log as it was before `stage` began.

    That is the header and the complete rows of other stages, each once.
    """
    kept, seen = [], set()
    for line in content.decode("utf-8", errors="replace").splitlines(keepends=True):
        cells = line.split(",")
        key = tuple(cells[:3])
        whole = line.endswith("\n") and len(cells) == len(COLUMNS)
        if whole and cells[0] != stage and key not in seen:
            seen.add(key)
            kept.append(line)
    if kept and kept[0].rstrip("\n") != ",".join(COLUMNS):
        kept.insert(0, ",".join(COLUMNS) + "\n")
    return "".join(kept).encode()
