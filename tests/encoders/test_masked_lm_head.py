"""The masked-LM head of a checkpoint gives its logits, and is saved as Transformers' own model."""

from __future__ import annotations

import pytest
import torch
import transformers as t
from torch import nn

from tartan.encoders.export import check_masked_lm, save_masked_lm
from tartan.encoders.heads import MaskedLMHead, split_masked_lm
from tartan.encoders.pretrained import PretrainedEncoder
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.errors import UserError
from tests.encoders.bodies import SMALL, save

VOCABULARY = SMALL["vocab_size"]
DISTIL = {
    "vocab_size": VOCABULARY, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24,
    "max_position_embeddings": 40,
}  # fmt: skip
SPECIAL = {
    "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3
}  # fmt: skip
KINDS = [
    "bert", "roberta", "xlm-roberta", "distilbert", "electra", "mpnet", "deberta-v2", "modernbert",
    "eurobert", "eurobert, tied",
]  # fmt: skip


def model_of(kind):
    torch.manual_seed(0)
    models = {
        "bert": lambda: t.BertForMaskedLM(t.BertConfig(**SMALL)),
        "roberta": lambda: t.RobertaForMaskedLM(t.RobertaConfig(**SMALL)),
        "distilbert": lambda: t.DistilBertForMaskedLM(t.DistilBertConfig(**DISTIL)),
        "electra": lambda: t.ElectraForMaskedLM(t.ElectraConfig(embedding_size=12, **SMALL)),
        "mpnet": lambda: t.MPNetForMaskedLM(t.MPNetConfig(**SMALL)),
        "modernbert": lambda: t.ModernBertForMaskedLM(t.ModernBertConfig(**SMALL, **SPECIAL)),
        "xlm-roberta": lambda: t.XLMRobertaForMaskedLM(t.XLMRobertaConfig(**SMALL)),
        "deberta-v2": lambda: t.DebertaV2ForMaskedLM(t.DebertaV2Config(**SMALL)),
        "eurobert": lambda: t.EuroBertForMaskedLM(t.EuroBertConfig(**SMALL, **SPECIAL)),
        "eurobert, tied": lambda: t.EuroBertForMaskedLM(
            t.EuroBertConfig(tie_word_embeddings=True, mlp_bias=True, **SMALL, **SPECIAL)
        ),
        "bert with relu": lambda: t.BertForMaskedLM(t.BertConfig(hidden_act="relu", **SMALL)),
        "gelu_new": lambda: t.BertForMaskedLM(t.BertConfig(hidden_act="gelu_new", **SMALL)),
        "bert of two tasks": lambda: t.BertForPreTraining(t.BertConfig(**SMALL)),
    }
    model = models[kind]().eval()
    # as initialised, biases are 0 and norms 1: a head that forgot them would look right
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) / 4)
    return model


def inputs():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (3, 9), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def own_logits(model):
    with torch.no_grad():
        output = model(**inputs())
    return output.prediction_logits if "prediction_logits" in output else output.logits


def our_logits(body, head):
    with torch.no_grad():
        hidden = body.eval()(**inputs()).last_hidden_state
        return head(hidden, body.get_input_embeddings().weight)


def loaded(model, folder):
    return PretrainedEncoder(name=str(save(model, folder))).load()


@pytest.mark.parametrize("kind", [*KINDS, "bert of two tasks"])
def test_a_masked_lm_is_loaded_with_its_head_and_saved_again(kind, tmp_path):
    model = model_of(kind)
    expected = own_logits(model)
    encoder = loaded(model, tmp_path / "model")
    assert encoder.body.training
    ours = our_logits(encoder.body, encoder.mlm_head)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)
    save_masked_lm(encoder.body, encoder.mlm_head, encoder.tokenizer, tmp_path / "again")
    again = t.AutoModelForMaskedLM.from_pretrained(tmp_path / "again").eval()
    torch.testing.assert_close(own_logits(again), expected, atol=1e-5, rtol=1e-5)


def test_an_encoder_without_a_head_is_saved_with_a_new_one(tmp_path):
    encoder = TinyEncoder().load()
    head = encoder.new_mlm_head()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
    encoder.tokenizer(["a text of words"], truncation=True, max_length=4, padding=True)
    save_masked_lm(encoder.body, head, encoder.tokenizer, tmp_path)
    assert encoder.body.training  # as it was
    model = t.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    ours = our_logits(encoder.body, head)
    torch.testing.assert_close(own_logits(model), ours, atol=1e-5, rtol=1e-5)
    tokenizer = t.AutoTokenizer.from_pretrained(tmp_path)  # without its last call's truncation
    assert len(tokenizer("a text of words")["input_ids"]) > 4


def test_a_head_that_cannot_be_saved_is_refused_before_training():
    body = t.BertModel(t.BertConfig(hidden_act="relu", **SMALL), add_pooling_layer=False)
    encoder = TextEncoder("with ReLU", body, letter_pair_tokenizer())
    with pytest.raises(UserError, match="with ReLU"):
        check_masked_lm(encoder)


@pytest.mark.parametrize("kind", ["bert with relu", "gelu_new"])
def test_a_head_with_another_activation_is_kept_as_it_is_or_refused(kind):
    model = model_of(kind)
    try:
        body, head = split_masked_lm(model, set())
    except UserError:
        return
    torch.testing.assert_close(our_logits(body, head), own_logits(model), atol=1e-3, rtol=1e-3)


def test_a_checkpoint_without_the_head_gives_none():
    model = model_of("bert")
    body, head = split_masked_lm(model, {"cls.predictions.transform.dense.bias"})
    assert (body is model.base_model, head) == (True, None)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40])
def test_padding_rows_change_neither_logits_nor_gradients(count):
    torch.manual_seed(0)
    head = MaskedLMHead(hidden_size=8, vocabulary_size=30, embedding_size=6).double()
    nn.init.normal_(head.bias)  # padded rows would have logits, and with them gradients
    embeddings = torch.randn(30, 6, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(count, 8, dtype=torch.float64, requires_grad=True)
    reached = [hidden, embeddings, *head.parameters()]
    logits = head(hidden, embeddings)
    assert logits.shape == (count, 30)
    one_by_one = torch.cat([_plainly(head, row[None], embeddings) for row in hidden])
    assert torch.allclose(logits, one_by_one, rtol=1e-12)
    directions = torch.randn_like(logits)
    found = torch.autograd.grad(logits, reached, directions)
    expected = torch.autograd.grad(one_by_one, reached, directions)
    assert all(
        torch.allclose(f, e, rtol=1e-9, atol=1e-12) for f, e in zip(found, expected, strict=True)
    )


def _plainly(head, hidden, embeddings):
    inner = nn.functional.gelu(hidden @ head.dense.weight.T + head.dense.bias)
    centred = inner - inner.mean(-1, keepdim=True)
    normed = centred / (centred.square().mean(-1, keepdim=True) + head.norm.eps).sqrt()
    return (normed * head.norm.weight + head.norm.bias) @ embeddings.T + head.bias
