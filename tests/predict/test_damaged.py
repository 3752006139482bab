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
from tartan.encoders.pretrained import PretrainedEncoder
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError


def changed(classifier, folder, change):
    """A copy of the classifier whose weights `change` was called with."""
    shutil.copytree(classifier, folder)
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, {"format": "pt"})
    return folder


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["classifier.weight", "bert.embeddings.word_embeddings.weight"])
def test_weights_that_are_not_finite_are_refused(value, name, classifier, predict, tmp_path):
    def damage(weights):
        weights[name][0, 0] = value

    folder = changed(classifier, tmp_path / "model", damage)
    (tmp_path / "in.csv").write_text("text\nred\n")
    with pytest.raises(UserError, match=rf"weights {name} are not all finite numbers"):
        predict(tmp_path / "in.csv", tmp_path / "out.csv", model=str(folder))
    assert not (tmp_path / "out.csv").exists()


def test_tokens_that_the_model_has_no_embedding_of_are_refused(classifier, predict, tmp_path):
    shutil.copytree(classifier, tmp_path / "model")
    tokenizer = letter_pair_tokenizer()
    tokenizer.add_tokens(["red"])
    tokenizer.model_max_length = 16
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "in.csv").write_text("text\nred\n")
    with pytest.raises(
        UserError, match=r"model=.*: its tokenizer has \d+ tokens, but its model embeds only"
    ):
        predict(tmp_path / "in.csv", tmp_path / "out.csv", model=str(tmp_path / "model"))


def test_a_head_apart_that_is_not_finite_is_refused(tmp_path):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(letter_pair_tokenizer()), intermediate_size=24, **sizes)
    BertModel(config).save_pretrained(tmp_path)
    letter_pair_tokenizer().save_pretrained(tmp_path)
    (tmp_path / "labels.json").write_text('["a", "b"]')
    head = ClassifierHead(16, 2, 0.0).state_dict()
    save_file(head, tmp_path / HEAD)
    assert load_classifier(tmp_path).labels == ("a", "b")
    save_file(head | {"out.bias": torch.tensor([0.0, torch.nan])}, tmp_path / HEAD)
    with pytest.raises(UserError, match=r"weights out\.bias are not all finite"):
        load_classifier(tmp_path)


def test_an_encoder_whose_weights_are_not_finite_is_refused(classifier, tmp_path):
    def damage(weights):
        weights["bert.encoder.layer.1.output.dense.bias"][0] = torch.nan

    folder = changed(classifier, tmp_path / "model", damage)
    with pytest.raises(UserError, match="are not all finite"):
        PretrainedEncoder(str(folder)).load()


def test_a_row_without_finite_probabilities_is_named_and_what_was_written_kept(
    classifier, predict, tmp_path
):
    """Finite weights may overflow, here for texts that hold one rare token alone."""
    token = letter_pair_tokenizer().convert_tokens_to_ids("~")

    def damage(weights):
        weights["bert.embeddings.word_embeddings.weight"][token] = 3e38

    folder = changed(classifier, tmp_path / "model", damage)
    rows = ["plain"] * 1024 + ["fine", "~", "plain"]
    (tmp_path / "in.csv").write_text("text\n" + "".join(f"{row}\n" for row in rows))
    with pytest.raises(UserError, match=r"row 1,026: the classifier gives it no finite prob"):
        predict(tmp_path / "in.csv", tmp_path / "out.csv", model=str(folder))
    assert not (tmp_path / "out.csv").exists()
    gathered = (tmp_path / "out.csv.unfinished").read_bytes()
    assert gathered.count(b"\n") == 1  # the first chunk


@pytest.fixture
def in_parts(tmp_path):
    """A classifier whose body and head are in files of their own."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(letter_pair_tokenizer()), intermediate_size=24, **sizes)
    folder = tmp_path / "model"
    BertModel(config).save_pretrained(folder)
    letter_pair_tokenizer().save_pretrained(folder)
    save_file(ClassifierHead(16, 2, 0.0).state_dict(), folder / HEAD)
    (folder / LABELS).write_text('["a", "b"]')
    return folder


@pytest.mark.parametrize("of_which", ["embeddings.word_embeddings", "attention.output.dense.bias"])
def test_a_body_that_lacks_weights_labels_nothing(of_which, in_parts):
    weights = load_file(in_parts / "model.safetensors")
    kept = {name: value for name, value in weights.items() if of_which not in name}
    assert len(kept) < len(weights)
    save_file(kept, in_parts / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=rf"its weights lack .*{of_which}"):
        load_classifier(in_parts)


def test_a_body_without_the_pooler_that_no_head_reads_is_whole(in_parts):
    weights = load_file(in_parts / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "pooler" not in name}
    assert len(kept) < len(weights)
    save_file(kept, in_parts / "model.safetensors", {"format": "pt"})
    assert load_classifier(in_parts).labels == ("a", "b")


@pytest.mark.parametrize(
    "labels",
    [
        "[1, 2]",
        "[[1], [2]]",
        '["a", "a"]',
        '[null, "a"]',
        '["a"]',
        '{"a": 1, "b": 2}',
        "3",
        "[",
        "",
    ],
)
def test_names_of_labels_that_are_none_are_one_line(labels, in_parts):
    (in_parts / LABELS).write_text(labels)
    with pytest.raises(UserError) as caught:
        load_classifier(in_parts)
    assert "\n" not in str(caught.value)


def test_labels_that_share_a_name_are_refused(classifier, tmp_path):
    shutil.copytree(classifier, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"id2label": dict.fromkeys(config["id2label"], "same")}))
    with pytest.raises(UserError, match="at least two labels, each with another name"):
        load_classifier(tmp_path / "model")


def test_a_classifier_without_its_tokenizer_is_refused(classifier, tmp_path):
    shutil.copytree(classifier, tmp_path / "model")
    for path in (tmp_path / "model").glob("tokenizer*"):
        path.unlink()
    with pytest.raises(UserError, match="has no tokenizer"):
        load_classifier(tmp_path / "model")
