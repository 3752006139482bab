"""Loads pre-trained folders safely: checks them first, reads only safetensors, runs no code.

A folder in Hugging Face's layout may come from anybody. Transformers 5 imports Python files that a
folder's `auto_map` names; where `trust_remote_code` is unset it asks on standard input, which a
piped data row can answer. It also fetches kernels that a configuration names, and follows the paths
of a shard index. Every `from_pretrained` of this project is therefore called here.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    dynamic_module_utils,
)
from transformers.models.auto.auto_factory import _BaseAutoModelClass

from tartan.errors import UserError, first_line
from tartan.files import is_inside, paths_in

T = TypeVar("T")

_BUILT_IN = ("eager", "sdpa", "flex_attention")
"""Attention implementations of PyTorch; Transformers may download others from the Hub."""
_KERNEL_ENTRIES = ("attn_implementation", "experts_implementation")
_REFUSED = {
    "config.json": (
        "quantization_config", "transformers_weights", "configuration_files", "gguf_file",
    ),
    "tokenizer_config.json": ("fast_tokenizer_files",),
}  # fmt: skip
"""Entries, by file, with which Transformers would read other files or weights of another kind."""
_OWN_FILES = ("tokenizer_file", "special_tokens_map_file", "added_tokens_file")
"""Entries of tokenizer_config.json in whose place Transformers takes the folder's own files."""
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")


def load_config(folder: Path) -> PretrainedConfig:
    """Load the configuration in `folder`, after `check_folder`."""
    return _load(AutoConfig, folder)  # type: ignore[no-any-return]


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer in `folder`, after `check_folder`."""
    if not any(path for pattern in _TOKENIZER_FILES for path in folder.glob(pattern)):
        # Transformers would return an empty one
        raise UserError(f"{folder} has no tokenizer; save it there too")
    tokenizer: PreTrainedTokenizerBase = _load(AutoTokenizer, folder)
    if not tokenizer.get_vocab().keys() - {*tokenizer.all_special_tokens}:
        raise UserError(f"{folder}: its tokenizer has no tokens but special ones")
    limit = tokenizer.model_max_length
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
        raise UserError(f"{folder}: the tokenizer's model_max_length has to be at least 1")
    return tokenizer


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """Make a UserError of any error: a damaged configuration leads to all classes of them."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UserError(f"{what} cannot be read ({reason})") from error


def load_model(
    kind: type[_BaseAutoModelClass], folder: Path, **options: Any
) -> tuple[PreTrainedModel, set[str]]:
    """Load the model in `folder`, in float32, and the names of weights that its files lack."""
    # a half-precision checkpoint would otherwise be trained in half precision
    options |= {"use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
    model, loading = _load(kind, folder, **options)
    check_finite_weights(model, folder)
    return model, set(loading["missing_keys"])


def without_pooler(build: Callable[..., T]) -> T:
    """Call `build(add_pooling_layer=False)`, or `build()` for an architecture without a pooler."""
    try:
        return build(add_pooling_layer=False)
    except TypeError:  # Transformers passes the argument on to the architecture's class
        return build()


def check_finite_weights(model: nn.Module, folder: Path) -> None:
    """Check that all parameters are finite: training would go on with others without an error."""
    for name, parameter in model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise UserError(f"{folder}: the weights {name} are not all finite numbers")


def _load(kind: Any, folder: Path, **options: Any) -> Any:
    check_folder(folder)
    options |= {"local_files_only": True, "trust_remote_code": False}
    patience = dynamic_module_utils.TIME_OUT_REMOTE_CODE
    # so that code is refused where it would be asked for: `RagTokenizer` forgets our answer
    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0
    try:
        return kind.from_pretrained(folder, **options)
    except ValueError as error:
        files = (folder / "config.json", folder / "tokenizer_config.json")
        if not any("auto_map" in _read_json(file) for file in files):
            raise
        raise UserError(
            f"{folder} needs Python code of its own (auto_map), which is not run; a program can "
            "pass a model and its tokenizer"
        ) from error
    finally:
        dynamic_module_utils.TIME_OUT_REMOTE_CODE = patience


def check_folder(folder: Path) -> None:
    """Check that loading `folder` reads no files outside of it and runs only installed code."""
    for path in paths_in(folder):
        if not is_inside(path, folder):
            raise UserError(f"{path} is a link out of the model's folder and is not read")
        if not path.is_file() and not path.is_dir():
            raise UserError(f"{path} is neither a file nor a folder; remove it")
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder} has no config.json; is it a saved model?")
    for name, refused in _REFUSED.items():
        entries = _read_json(folder / name)
        for entry in refused:
            if entries.get(entry) is not None:
                raise UserError(f"{folder / name}: {entry} is set, which is not supported")
    if (folder / "adapter_config.json").is_file():
        raise UserError(f"{folder} holds an adapter of another model; merge it into that model")
    if any(folder.glob("shard-*-model-*.safetensors")):
        raise UserError(f"{folder} holds a distributed checkpoint; save the model as one")
    index = folder / "model.safetensors.index.json"
    for shard in dict(_read_json(index).get("weight_map", {})).values():
        if Path(str(shard)).name != shard:
            raise UserError(f"{index}: {shard!r} is not a file of the model's folder itself")
        if not shard.endswith(".safetensors"):
            raise UserError(f"{index}: {shard!r} is not a safetensors file and is not read")
    path = folder / "tokenizer_config.json"
    for name, value in _read_json(path).items():
        if name.endswith("_file") and name not in _OWN_FILES and value is not None:
            raise UserError(f"{path}: {name} is set: it names a file elsewhere; remove the entry")
    path = folder / "config.json"
    config = _read_json(path)
    if str(config.get("model_type")).startswith("timm_"):  # which loads weights from anywhere
        raise UserError(f"{path}: a model of the package timm reads no text")
    for name, chosen in _chosen_kernels(config):
        if chosen not in _BUILT_IN:
            raise UserError(
                f"{path}: {name} is {chosen!r}, which may be code from the Hub and is not run; "
                f"remove the entry or use one of {', '.join(_BUILT_IN)}"
            )


def _chosen_kernels(entry: Any, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield entry and kernel for each choice of kernels in a configuration or those within it."""
    if not isinstance(entry, dict):
        return
    for key, value in entry.items():
        at = f"{name}.{key}" if name else str(key)
        if str(key).removesuffix("_internal").lstrip("_") in _KERNEL_ENTRIES:
            chosen = value.values() if isinstance(value, dict) else [value]
            yield from ((at, one) for one in chosen if one is not None)
        else:
            yield from _chosen_kernels(value, at)


def _read_json(path: Path) -> dict[str, Any]:
    """Return the entries of a file, none if it does not exist."""
    try:
        entries = json.loads(path.read_bytes()) if path.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error
    if not isinstance(entries, dict):
        raise UserError(f"{path} cannot be read: it does not hold a JSON object")
    return entries
