"""A classifier that is damaged labels nothing."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel

from tartan.encoders.export import HEAD, LABELS
from tartan.encoders.heads import ClassifierHead
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError


@pytest.fixture
def model(classifier, tmp_path):
    """A copy of the classifier, to be damaged."""
    return shutil.copytree(classifier, tmp_path / "model")


@pytest.fixture
def in_parts(tmp_path):
    """A classifier whose body and head are in files of their own."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(letter_pair_tokenizer()), intermediate_size=24, **sizes)
    folder = tmp_path / "parts"
    BertModel(config).save_pretrained(folder)
    letter_pair_tokenizer().save_pretrained(folder)
    save_file(ClassifierHead(16, 2, 0.0).state_dict(), folder / HEAD)
    (folder / LABELS).write_text('["a", "b"]')
    assert load_classifier(folder).labels == ("a", "b")
    return folder


def change_weights(folder, change, name="model.safetensors"):
    weights = load_file(folder / name)
    save_file(change(weights), folder / name, {"format": "pt"})


def test_weights_that_are_not_finite_are_refused(model, predict, tmp_path):
    def damage(weights):
        weights["bert.embeddings.word_embeddings.weight"][0, 0] = torch.nan
        return weights

    change_weights(model, damage)
    (tmp_path / "in.csv").write_text("text\nred\n")
    with pytest.raises(UserError, match="word_embeddings"):
        predict(tmp_path / "in.csv", tmp_path / "out.csv", model=str(model))
    assert sorted(path.name for path in tmp_path.glob("out*")) == []


def test_a_head_apart_that_is_not_finite_is_refused(in_parts):
    change_weights(in_parts, lambda w: w | {"out.bias": torch.tensor([0.0, torch.nan])}, HEAD)
    with pytest.raises(UserError, match=r"out\.bias"):
        load_classifier(in_parts)


def test_a_row_without_finite_probabilities_is_named(model, predict, tmp_path):
    """Finite weights may overflow, here for texts that hold one rare token alone."""
    token = letter_pair_tokenizer().convert_tokens_to_ids("~")

    def damage(weights):
        weights["bert.embeddings.word_embeddings.weight"][token] = 3e38
        return weights

    change_weights(model, damage)
    rows = ["plain"] * 1024 + ["fine", "~", "plain"]
    (tmp_path / "in.csv").write_text("text\n" + "".join(f"{row}\n" for row in rows))
    with pytest.raises(UserError, match=r"line 1027: the classifier gives it no finite prob"):
        predict(tmp_path / "in.csv", tmp_path / "out.csv", model=str(model))
    assert list(tmp_path.glob("out*")) == []


@pytest.mark.parametrize("part", ["embeddings.word_embeddings", "attention.output.dense.bias"])
def test_a_body_that_lacks_weights_labels_nothing(part, in_parts):
    change_weights(in_parts, lambda w: {name: w[name] for name in w if part not in name})
    with pytest.raises(UserError, match=part):
        load_classifier(in_parts)


def test_a_body_without_the_pooler_that_no_head_reads_is_whole(in_parts):
    change_weights(in_parts, lambda w: {name: w[name] for name in w if "pooler" not in name})
    assert load_classifier(in_parts).labels == ("a", "b")


@pytest.mark.parametrize("labels", ["[1, 2]", '["a", "a"]', '["a"]', "["])
def test_labels_without_names_of_their_own_are_refused(labels, in_parts):
    (in_parts / LABELS).write_text(labels)
    with pytest.raises(UserError):
        load_classifier(in_parts)


def test_labels_that_share_a_name_are_refused(model):
    config = json.loads((model / "config.json").read_text())
    config["id2label"] = dict.fromkeys(config["id2label"], "same")
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="label"):
        load_classifier(model)


def test_a_tokenizer_that_is_not_the_models_is_refused(model):
    tokenizer = letter_pair_tokenizer()
    tokenizer.add_tokens(["red"])
    tokenizer.save_pretrained(model)
    with pytest.raises(UserError, match="tokens"):  # more than the model embeds
        load_classifier(model)
    for path in model.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(UserError, match="has no tokenizer"):
        load_classifier(model)
    letter_pair_tokenizer().save_pretrained(model)
    content = json.loads((model / "tokenizer.json").read_text())
    special = {token["content"] for token in content["added_tokens"]}
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {name: vocabulary[name] for name in vocabulary if name in special}
    (model / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="its tokenizer has no tokens but special ones"):
        load_classifier(model)
