"""Loading a folder from a stranger runs none of its code and reads no files elsewhere."""

from __future__ import annotations

import ast
import io
import json
import os
import sys

import pytest
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    dynamic_module_utils,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tartan.encoders.pretrained import PretrainedEncoder
from tartan.encoders.safe_loading import load_tokenizer
from tartan.encoders.saved_classifier import load_classifier
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.encoders import bodies
from tests.encoders.bodies import SMALL

CODE = """
from pathlib import Path
Path({canary!r}).write_text("ran")
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
class OwnConfig(BertConfig):
    model_type = "own"
class OwnModel(BertModel):
    config_class = OwnConfig
class OwnTokenizer(PreTrainedTokenizerFast):
    pass
"""
MODELS = [AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification]
KINDS = ["AutoConfig", "AutoTokenizer", *(kind.__name__ for kind in MODELS)]


def save(folder, model=None):
    """Save a folder that can be loaded, which tests then change."""
    return bodies.save(model or BertForSequenceClassification(BertConfig(**SMALL)), folder)


def refused(folder, *uses, match=r"\w"):
    """Check that neither training nor prediction loads the folder, and that each says so."""
    for use in uses or (load_classifier, lambda path: PretrainedEncoder(str(path)).load()):
        with pytest.raises(UserError, match=match) as caught:
            use(folder)
        assert "\n" not in str(caught.value)


def change(path, **entries):
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def without_class(kind):
    """Return a model type that Transformers knows, but for which it lacks a class of this kind."""
    return next(name for name in CONFIG_MAPPING if CONFIG_MAPPING[name] not in kind._model_mapping)


@pytest.fixture
def canary(tmp_path):
    return tmp_path / "canary"


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    """Give Transformers an empty cache for imported code."""
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", list(sys.path))


def foreign(folder, kind, canary):
    """Save a folder that needs its own code for the Auto class named `kind`."""
    save(folder)
    (folder / "own.py").write_text(CODE.format(canary=str(canary)))
    own = {"AutoConfig": "own.OwnConfig", "AutoTokenizer": ["own.OwnTokenizer"] * 2}
    own |= {one.__name__: "own.OwnModel" for one in MODELS}
    if kind == "AutoTokenizer":
        change(folder / "config.json", model_type="mctct")
        change(folder / "tokenizer_config.json", auto_map=own, tokenizer_class="OwnTokenizer")
        return folder
    of_model = {one.__name__: without_class(one) for one in MODELS}
    model_type = of_model.get(kind, "own")
    architectures = ["OwnForMaskedLM" if kind == "AutoModelForMaskedLM" else "OwnModel"]
    auto_map = {kind: own[kind]} if kind in of_model else own
    entries = {"model_type": model_type, "auto_map": auto_map, "architectures": architectures}
    change(folder / "config.json", **entries)
    return folder


@pytest.fixture(params=["open", "closed", "full"])
def standard_input(request, monkeypatch):
    """Provide a standard input that never answers, is closed, or answers yes to everything."""
    monkeypatch.setattr(dynamic_module_utils, "TIME_OUT_REMOTE_CODE", 1)
    if request.param == "full":
        monkeypatch.setattr(sys, "stdin", io.StringIO("1\ny\nyes\n" * 100))
        yield request.param
        return
    reader, writer = os.pipe()
    with os.fdopen(reader) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        if request.param == "closed":
            stream.close()
        yield request.param
    os.close(writer)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folders_own_code_is_never_run(kind, standard_input, canary, tmp_path):
    refused(foreign(tmp_path / "model", kind, canary))
    assert not canary.exists()


CONFIG, TOKENIZER = "config.json", "tokenizer_config.json"


@pytest.mark.parametrize(
    ("file", "entries", "match"),
    [
        # kernels that may come from the Hub
        (CONFIG, {"_attn_implementation": "kernels-community/flash-attn2"}, "attn2"),
        (CONFIG, {"attn_implementation": "paged|somebody/kernel@main:name"}, "kernel"),
        (CONFIG, {"attn_implementation": {"": "sdpa", "text_config": "a/kernel"}}, "kernel"),
        (CONFIG, {"text_config": {"_attn_implementation_internal": "a/kernel"}}, "kernel"),
        (CONFIG, {"_experts_implementation": "somebody/kernel"}, "kernel"),
        (CONFIG, {"attn_implementation": "flash_attention_2"}, "flash"),
        # other files, or weights of another kind
        (CONFIG, {"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
        (CONFIG, {"transformers_weights": "adapter_model.bin"}, "transformers_weights"),
        (CONFIG, {"configuration_files": ["config.4.0.0.json"]}, "configuration_files"),
        (CONFIG, {"gguf_file": "/etc/hostname"}, "gguf_file"),
        (CONFIG, {"model_type": "timm_wrapper", "architecture": "resnet18"}, "timm"),
        (TOKENIZER, {"fast_tokenizer_files": ["../tokenizer.json"]}, "fast_tokenizer_files"),
        (TOKENIZER, {"vocab_file": "/elsewhere"}, "vocab_file is set"),
        (TOKENIZER, {"spm_file": "/elsewhere"}, "spm_file is set"),
        ("model.safetensors.index.json", {"weight_map": {"a.bias": "part.bin"}}, "part.bin"),
        ("adapter_config.json", {"base_model_name_or_path": "somebody/model"}, "adapter"),
        ("shard-00000-model-00001-of-00001.safetensors", {}, "distributed"),
        # what nothing else checks
        (TOKENIZER, {"model_max_length": "../../x"}, "model_max_length"),
        (TOKENIZER, {"model_max_length": -1}, "model_max_length"),
    ],
    ids=str,
)
def test_what_would_read_other_files_or_run_code_from_the_hub_is_refused(
    file, entries, match, tmp_path
):
    folder = save(tmp_path / "model")
    path = folder / file
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | entries))
    refused(folder, match=match)


def test_a_tokenizers_usual_names_of_its_own_files_are_read(tmp_path):
    folder = save(tmp_path / "model")
    usual = dict.fromkeys(("tokenizer_file", "special_tokens_map_file"), "/root/x.json")
    change(folder / TOKENIZER, vocab_file=None, **usual)
    load_tokenizer(folder)


@pytest.mark.parametrize(
    "where", ["{outside}", "../outside.safetensors", "link/outside.safetensors"]
)
def test_a_shard_outside_the_folder_is_refused(where, tmp_path):
    folder = save(tmp_path / "model")
    outside = tmp_path / "outside.safetensors"
    (folder / "model.safetensors").rename(outside)
    (folder / "other.safetensors").write_bytes(b"")
    with_weights = {"weight_map": {"classifier.bias": where.format(outside=outside)}}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, **with_weights}))
    refused(folder, match=r"index\.json: .* is not a file of the model's folder")


@pytest.mark.parametrize("text", ["", "[]", "{", '"text"', "\x00", "[" * 100_000])
def test_a_configuration_that_is_not_an_object_is_an_error_of_one_line(text, tmp_path):
    folder = save(tmp_path / "model")
    (folder / "config.json").write_text(text)
    refused(folder, match=r"config\.json cannot be read")


def calls(name):
    """Return `path:line` of each call of a method `name` in src/, with the call."""
    for path in sorted((ROOT / "src" / "tartan").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == name:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_no_architecture_is_built_from_code_that_a_configuration_names():
    found = list(calls("from_config"))
    assert found
    for place, node in found:
        trusted = {k.arg: ast.unparse(k.value) for k in node.keywords}.get("trust_remote_code")
        assert trusted == "False", place


@pytest.mark.parametrize("name", [CONFIG, "model.safetensors", "tokenizer.json", "more/x.jinja"])
def test_a_link_out_of_the_folder_is_not_read(name, tmp_path):
    folder = save(tmp_path / "model")
    outside = tmp_path / "outside"
    (folder / "more").mkdir()  # such as chat templates, which are saved with the tokenizer
    (folder / "more" / "x.jinja").write_text("secret")
    (folder / name).rename(outside)
    (folder / name).symlink_to(outside)
    refused(folder, match=rf"{name} is a link out of the model's folder")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "classifier").symlink_to(folder)
    refused(tmp_path / "run", load_classifier, match="classifier is a link out of")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "labels.json"])
def test_a_pipe_in_the_place_of_a_file_is_named_and_not_waited_for(name, tmp_path):
    folder = save(tmp_path / "model")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    refused(folder)


def test_a_tokenizer_of_two_tokenizers_runs_no_code_of_theirs(standard_input, canary, tmp_path):
    """Transformers' RagTokenizer loads both without the answer that we gave."""
    folder = save(tmp_path / "model")
    change(folder / "tokenizer_config.json", tokenizer_class="RagTokenizer")
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "vit"}
    for part in ("question_encoder_tokenizer", "generator_tokenizer"):
        own = save(folder / part)
        (own / "own.py").write_text(CODE.format(canary=str(canary)))
        auto_map = {"AutoTokenizer": ["own.OwnTokenizer"] * 2}
        change(own / "tokenizer_config.json", auto_map=auto_map, tokenizer_class="OwnTokenizer")
    (folder / "own.py").write_text(CODE.format(canary=str(canary)))
    change(folder / "config.json", model_type="rag", question_encoder=config, generator=config)
    refused(folder)
    assert not canary.exists()


def test_all_loading_goes_through_one_module():
    places = {place.split(":")[0] for place, _ in calls("from_pretrained")}
    assert places == {"src/tartan/encoders/safe_loading.py"}
