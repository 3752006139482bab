"""With `encoder/adapter=lora` an adapter is trained in the body's place, and merged when saved."""

from __future__ import annotations

import copy
from pathlib import Path

import peft
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from tartan import ContinuedPretraining, MetaTartan, TartanData
from tartan.encoders.layers import reinitialise_top
from tartan.encoders.lora import Lora, merged
from tartan.encoders.pretrained import PretrainedEncoder
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.errors import UserError
from tartan.kernels.attention import use_kernels
from tests.encoders.bodies import random_body, save
from tests.in_process import part, recorded_run, same, toy
from tests.kernels.test_packing import rows_of, states_of
from tests.methods.lightning import fitted, state_of, toy_data

TEXTS = ["red apple", "an old and cold river", "stone"]
ADAPTED = TinyEncoder(adapter=Lora(rank=4, dropout=0.1, target_modules="all-linear", keep=True))


def randomise(body: nn.Module) -> None:
    torch.manual_seed(1)
    for name, value in body.named_parameters():
        if "lora_" in name:
            nn.init.normal_(value, std=0.1)


@pytest.mark.parametrize("chosen", [None, "all-linear"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "modernbert", "electra"])
def test_states_and_gradients_in_packed_rows_are_those_of_peft(kind, chosen):
    body = random_body(kind).double().eval()
    known = peft.utils.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
    named = chosen or known.get(body.config.model_type, "all-linear")
    config = peft.LoraConfig(r=4, lora_alpha=12, target_modules=named)
    reference = peft.get_peft_model(copy.deepcopy(body), config).eval()
    Lora(rank=4, alpha=12, target_modules=chosen).add_to(body, kind)
    randomise(body)
    randomise(reference)
    use_kernels(body)
    encoder = TextEncoder(kind, body, letter_pair_tokenizer())
    rows = rows_of(encoder, False)
    assert encoder.supports_packing
    results = []
    for model, packed in ((body, True), (reference.base_model.model, False)):
        states = states_of(TextEncoder(kind, model, encoder.tokenizer), rows, packed)
        trained = [p for p in model.parameters() if p.requires_grad]
        weights = torch.arange(states.numel(), dtype=torch.float64).sin().view_as(states)
        results.append([states, *torch.autograd.grad((states * weights).sum(), trained)])
    assert len(results[0]) == len(results[1]) > 4
    torch.testing.assert_close(*results, rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def trained(data_dir, cache_dir, tmp_path_factory) -> tuple[MetaTartan, TartanData, Path]:
    """A module with an adapter after six steps, its data, and its checkpoint after three."""
    folder = tmp_path_factory.mktemp("trained")
    data = toy_data(data_dir, cache_dir, encoder=ADAPTED)
    module = MetaTartan.for_data(data, lr=5e-2)
    points = ModelCheckpoint(folder, every_n_train_steps=3, save_top_k=-1)
    fitted(module, data, folder, max_steps=6, callbacks=[points])
    return module.eval(), data, next(folder.rglob("*step=3.ckpt"))


def test_only_the_adapter_is_trained_and_a_resumed_run_ends_alike(
    trained, data_dir, cache_dir, tmp_path
):
    module, _, point = trained
    state, before = part(state_of(module), "body"), ADAPTED.load().body.state_dict()
    for name, value in state.items():
        assert value.equal(before[name]) != ("lora_" in name), name
    resumed = MetaTartan.for_data(data := toy_data(data_dir, cache_dir, encoder=ADAPTED), lr=5e-2)
    fitted(resumed, data, tmp_path, max_steps=6, ckpt_path=point, enable_checkpointing=False)
    assert same(state_of(resumed), state_of(module))
    again = MetaTartan.load_from_checkpoint(point)
    assert again.encoder.adapter == ADAPTED.adapter
    assert sum(p.requires_grad for p in again.body.parameters()) == len(before) - len(
        TinyEncoder().load().body.state_dict()
    )


@torch.no_grad()
def test_the_saved_classifier_is_merged_and_peft_loads_the_adapter_with_the_head(trained, tmp_path):
    module, _, _ = trained
    module.save_pretrained(tmp_path)
    saved = load_classifier(tmp_path)
    encoded = saved.tokenizer(TEXTS, padding=True, return_tensors="pt")
    expected = module(TEXTS).cpu()
    torch.testing.assert_close(saved.logits(encoded), expected, rtol=0, atol=1e-5)
    assert not any("lora" in name for name in saved.model.state_dict())
    base = AutoModelForSequenceClassification.from_config(saved.model.config)  # with another head
    base.base_model.load_state_dict(TinyEncoder().load().body.state_dict(), strict=False)
    adapted = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    torch.testing.assert_close(adapted(**encoded).logits, expected, rtol=0, atol=1e-5)
    adapted.unload()
    assert not torch.allclose(module(TEXTS).cpu(), base.eval()(**encoded).logits, atol=1e-2)


@pytest.mark.parametrize(
    "kind", ["modernbert", "eurobert", "deberta-v2", "electra", "distilbert", "gte", "roberta"]
)
def test_heads_are_trained_beside_an_adapter_and_saved_with_it(kind, data_dir, cache_dir, tmp_path):
    folder = save(random_body(kind), tmp_path / "encoder")
    encoder = PretrainedEncoder(name=str(folder), adapter=ADAPTED.adapter)
    data = toy_data(data_dir, cache_dir, encoder=encoder)
    module = MetaTartan.for_data(data, lr=5e-2)
    before = copy.deepcopy(module.heads["end_task"].state_dict())
    fitted(module, data, tmp_path, max_steps=2)
    changed = module.heads["end_task"].state_dict()
    assert not any(value.equal(changed[name]) for name, value in before.items())
    module.eval().save_pretrained(tmp_path / "saved")
    base = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
    encoded = tokenizer(TEXTS, padding=True, return_tensors="pt")
    expected = module(TEXTS).cpu()
    torch.testing.assert_close(base(**encoded).logits, expected, rtol=0, atol=1e-5)
    base.base_model.load_state_dict(AutoModel.from_pretrained(folder).state_dict(), strict=False)
    adapted = peft.PeftModel.from_pretrained(base, tmp_path / "saved" / "adapter").eval()
    torch.testing.assert_close(adapted(**encoded).logits, expected, rtol=0, atol=1e-5)


def test_the_saved_masked_lm_is_merged_with_its_head(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir, encoder=ADAPTED)
    module = ContinuedPretraining.for_data(data, lr=5e-2)
    fitted(module, data, tmp_path, max_steps=3)
    module.eval().save_pretrained(tmp_path / "encoder")
    encoded = module.encoder.tokenizer(TEXTS, padding=True, return_tensors="pt")
    states = merged(module.body.cpu())(**encoded).last_hidden_state
    expected = module.body(**encoded).last_hidden_state
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-5)
    assert not torch.allclose(states, TinyEncoder().load().body.eval()(**encoded)[0], atol=1e-3)
    logits = AutoModelForMaskedLM.from_pretrained(tmp_path / "encoder")(**encoded).logits
    words = module.body.get_input_embeddings().weight
    head = module.tasks[0].head.cpu()
    torch.testing.assert_close(logits, head(expected, words), rtol=0, atol=1e-4)


def test_a_later_stage_trains_the_same_adapter_on(data_dir, cache_dir, tmp_path):
    options = toy(data_dir, cache_dir, "tapt", "+encoder/adapter=lora", "encoder.adapter.rank=2")
    run = recorded_run(options, tmp_path)
    first, second = part(run.ends["tapt"], "body"), part(run.starts["finetune"], "body")
    assert same(first, second)
    tuned = part(run.ends["finetune"], "body")
    changed = {name for name, value in tuned.items() if not value.equal(second[name])}
    assert changed == {name for name in tuned if "lora_" in name}
    assert len(changed) == 8


def test_what_an_adapter_cannot_do_is_refused():
    body = TinyEncoder().load().body
    with pytest.raises(UserError, match=r"encoder\.adapter.*nothing"):
        Lora(target_modules=["nothing"]).add_to(body, "tiny")
    with pytest.raises(UserError, match="not all are linear"):
        Lora(target_modules=["word_embeddings"]).add_to(TinyEncoder().load().body, "tiny")
    with pytest.raises(UserError, match="reinitialise"):
        reinitialise_top(ADAPTED.load().body, 1, 0)
