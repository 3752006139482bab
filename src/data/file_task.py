"""An end task in the user's own files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from src.data.held_out import HeldOut
from src.data.text_task import TaskFiles, TextSource
from src.errors import UserError


@dataclass(frozen=True)
class FileTask(TextSource):
    """JSONL files with the fields `text` and `label`.

    Attributes:
        train: training examples.
        test: test examples.
        dev: validation examples; None splits them off the training ones.
        dev_share: which share of those, every label's alike.
        split_seed: of that choice.
        domain: unlabelled text of the domain; None where there is none.
    """

    train: str
    test: str
    dev: str | None = None
    dev_share: float = 0.2
    split_seed: int = 0
    domain: str | None = None

    def files(self) -> TaskFiles:
        """The files as named."""
        train, test = (Path(path).expanduser() for path in (self.train, self.test))
        if self.dev is None:
            return TaskFiles(train, HeldOut(self.dev_share, self.split_seed), test)
        return TaskFiles(train, Path(self.dev).expanduser(), test)

    def domain_file(self, size: float | None) -> Path:
        """The user's own file, the same for any size."""
        if self.domain is None:
            raise UserError(
                f"task {self.name} has no domain text; "
                "give it: task.domain=FILE, or use auxiliary=tapt"
            )
        return Path(self.domain)
