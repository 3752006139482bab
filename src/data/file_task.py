"""An end task in the user's own files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from src.data.end_task import TaskFiles
from src.errors import UserError


@dataclass(frozen=True)
class FileTask:
    """Three JSONL files with the fields `text` and `label`.

    Attributes:
        name: the name the result is reported under.
        metric: see `EndTaskSource`.
        max_length: see `EndTaskSource`.
        train: training examples.
        dev: validation examples.
        test: test examples.
        domain: unlabelled text of the domain; None where there is none.
    """

    name: str
    metric: str
    max_length: int
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
