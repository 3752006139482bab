"""Runs and writes classifiers in ONNX, which onnxruntime computes on CPUs."""

import inspect
import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from tartan.errors import UserError

ONNX = "model.onnx"
"""File with the weights of a classifier's folder in ONNX."""
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
MISSING = "ONNX takes further packages: pip install 'tartan-nlp[onnx]'"


class OnnxModel(nn.Module):
    """A classifier in ONNX, on as many threads as torch's, whichever device its inputs are on."""

    def __init__(self, file: Path, config: PretrainedConfig) -> None:
        super().__init__()
        try:
            import onnxruntime
        except ImportError as error:
            raise UserError(MISSING) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        # from memory: it cannot name files beside it
        self._session = onnxruntime.InferenceSession(
            file.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
        self._names = [one.name for one in self._session.get_inputs()]
        self.config = config

    def forward(self, **inputs: Tensor) -> SequenceClassifierOutput:
        """Return the logits `(n, classes)` of `n` tokenised texts."""
        arrays = {name: inputs[name].cpu().numpy() for name in self._names}
        (logits,) = self._session.run(["logits"], arrays)
        return SequenceClassifierOutput(logits=torch.from_numpy(logits))


class _Logits(nn.Module):
    def __init__(self, model: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: Tensor) -> Tensor:
        logits: Tensor = self.model(**dict(zip(self.names, values, strict=True))).logits
        return logits


def write_onnx(model: nn.Module, body: PreTrainedModel, types: bool, file: Path) -> None:
    """Write a classifier's logits as a function of tokenised texts, of any number and length.

    Args:
        model: returns an object with `logits`, from named inputs.
        body: of Transformers, on whose forward pass the inputs depend.
        types: whether the tokenizer gives token types.
        file: its weights are in it too.
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(MISSING) from error
    read = inspect.signature(body.forward).parameters
    names = [name for name in _INPUTS if name in read and (types or name != "token_type_ids")]
    ids = torch.ones(2, 8, dtype=torch.long)
    mask = ids.clone()
    mask[1, 5:] = 0  # Transformers would leave out a mask of ones
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": 0 * ids}
    axes = dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses torchvision
    usual = body.config._attn_implementation
    body.set_attn_implementation("eager")  # whose operations are fewer, and faster there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Logits(model, names).eval(),
            tuple(values[name] for name in names),
            str(file),
            input_names=names,
            output_names=["logits"],
            dynamic_shapes=(tuple(axes for _ in names),),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    body.set_attn_implementation(usual)


def quantise(source: Path, target: Path) -> None:
    """Write an ONNX file whose weights and matrix products are of 8-bit integers.

    Each column of a weight has a scale of its own, activations one a tensor. Weights have 7 bits,
    so that sums do not overflow on processors without VNNI.
    """
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source, target, per_channel=True, reduce_range=True)
