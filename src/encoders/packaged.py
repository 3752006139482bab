"""all-MiniLM-L6-v2 from a package on the Python package index: a real encoder without a hub."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from src.data.checksum import check_sha256
from src.encoders.text_encoder import TextEncoder, dropout_changes, load_folder
from src.errors import UserError


@dataclass(frozen=True)
class PackagedEncoder:
    """An encoder that an installed Python package carries as files.

    Attributes:
        name: the name the result is reported under.
        package: the import name of the package (never imported, only located).
        folder: the model's folder inside the package.
        distribution: what to install where the package is missing.
        sha256: checksums of the files that are verified before loading.
        attention_dropout: see `PretrainedEncoder`.
        hidden_dropout: see `PretrainedEncoder`.
        lr: see `PretrainedEncoder`.
    """

    name: str
    package: str
    folder: str
    distribution: str
    sha256: Mapping[str, str]
    attention_dropout: float | None = None
    hidden_dropout: float | None = None
    lr: Mapping[str, float] = field(default_factory=dict)

    def load(self) -> TextEncoder:
        """Load body and tokenizer; there is no masked-LM head in such a package.

        Raises:
            UserError: the package is not installed, or a file is not the expected one.
        """
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"encoder {self.name} needs the package {self.distribution}: "
                f"pip install {self.distribution}"
            )
        folder = Path(next(iter(spec.submodule_search_locations))) / self.folder
        for file, digest in self.sha256.items():
            check_sha256(folder / file, digest)
        changes = dropout_changes(self.attention_dropout, self.hidden_dropout)
        return load_folder(folder, self.name, changes)
