"""An end task in the user's own files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from src.data.text_task import TaskFiles, TextSource
from src.errors import UserError


@dataclass(frozen=True)
class FileTask(TextSource):
    """Three JSONL files with the fields `text` and `label`.

    Attributes:
        train: training examples.
        dev: validation examples.
        test: test examples.
        domain: unlabelled text of the domain; None where there is none.
    """

    train: str
    dev: str
    test: str
    domain: str | None = None

    def files(self) -> TaskFiles:
        """The files as named."""
        paths = (self.train, self.dev, self.test)
        return TaskFiles(*(Path(path).expanduser() for path in paths))

    def domain_file(self, size: float | None) -> Path:
        """The user's own file, the same for any size."""
        if self.domain is None:
            raise UserError(
                f"task {self.name} has no domain text; "
                "give it: task.domain=FILE, or use auxiliary=tapt"
            )
        return Path(self.domain)
