"""Classification of texts: the head, the features and the batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.classification import Classification


@pytest.fixture(scope="module")
def encoder():
    return TinyEncoder(hidden_size=16, layers=2).load()


@pytest.fixture
def rows(encoder):
    texts = ["a", "river and stone", "some more words", "x y", "apple", "the last of the texts"]
    ids = encoder.tokenizer(texts)["input_ids"]
    return [{"input_ids": i, "label": n % 3, "unseen": n > 2} for n, i in enumerate(ids)]


UNUSED = np.random.default_rng(0)


def test_features_are_the_states_of_the_first_tokens(encoder, rows):
    objective = Classification(classes=3)
    (part,) = objective.collate(encoder, 16)(rows, UNUSED).micro_batches
    body = encoder.body.eval()
    with torch.no_grad():
        hidden = body(
            input_ids=part.inputs["input_ids"], attention_mask=part.inputs["attention_mask"]
        ).last_hidden_state
        features = objective.features(body, part.inputs)
    assert torch.equal(features, hidden[:, 0])
    assert (part.inputs["input_ids"][:, 0] == encoder.tokenizer.cls_token_id).all()


@pytest.mark.parametrize("micro", [1, 4, 50])
def test_logits_labels_and_unseen_marks_stay_with_their_texts_whatever_the_padding(
    micro, encoder, rows
):
    objective = Classification(classes=3)
    body, head = encoder.body.eval(), objective.new_head(encoder).eval()
    batch, found = objective.collate(encoder, micro)(rows, UNUSED), []
    for part in batch.micro_batches:
        inputs = part.inputs
        assert part.units == len(inputs["labels"]) <= micro
        with torch.no_grad():
            logits = head(objective.features(body, inputs))
        names = ("input_ids", "attention_mask", "labels", "unseen")
        for ids, mask, label, unseen, own in zip(*(inputs[n] for n in names), logits, strict=True):
            row = {"label": int(label), "unseen": bool(unseen)}
            found.append({"input_ids": ids[mask == 1].tolist(), **row})
            with torch.no_grad():
                alone = head(body(ids[mask == 1][None]).last_hidden_state[:, 0])[0]
            torch.testing.assert_close(own, alone, atol=1e-5, rtol=1e-5)
    assert sorted(found, key=str) == sorted(rows, key=str)
    assert (batch.units, batch.examples) == (6, 6)
    assert batch.tokens == sum(len(row["input_ids"]) for row in rows)
