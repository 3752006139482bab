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


def test_logits_do_not_depend_on_padding(encoder, rows):
    objective = Classification(classes=3)
    body, head = encoder.body.eval(), objective.new_head(encoder).eval()

    def logits_by_text(micro):
        found = {}
        for part in objective.collate(encoder, micro)(rows, UNUSED).micro_batches:
            with torch.no_grad():
                logits = head(objective.features(body, part.inputs))
            for ids, mask, row in zip(
                part.inputs["input_ids"], part.inputs["attention_mask"], logits, strict=True
            ):
                found[tuple(ids[mask == 1].tolist())] = row
        return found

    alone, together = logits_by_text(1), logits_by_text(6)
    assert len(alone) == 6
    for text, logits in alone.items():
        torch.testing.assert_close(together[text], logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("micro", [1, 2, 4, 6, 50])
def test_labels_and_unseen_marks_stay_with_their_texts(micro, encoder, rows):
    batch = Classification(classes=3).collate(encoder, micro)(rows, UNUSED)
    found = [
        (ids[mask == 1].tolist(), label.item(), unseen.item())
        for part in batch.micro_batches
        for ids, mask, label, unseen in zip(
            part.inputs["input_ids"],
            part.inputs["attention_mask"],
            part.inputs["labels"],
            part.inputs["unseen"],
            strict=True,
        )
    ]
    assert sorted(found) == sorted((r["input_ids"], r["label"], r["unseen"]) for r in rows)
    assert [part.units for part in batch.micro_batches] == [
        len(part.inputs["labels"]) for part in batch.micro_batches
    ]
    assert all(part.units <= micro for part in batch.micro_batches)
    assert (batch.units, batch.examples) == (6, 6)
    assert batch.tokens == sum(len(row["input_ids"]) for row in rows)
