"""Classification of texts: features, batches, and the loss with weights of labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional as F

from tartan.core.task import Task
from tartan.core.weighting.fixed import Uniform
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.classification import Classification, class_weights
from tests.core.steps import take_step

LABELS, COUNTS = ("A", "B", "3"), (60, 30, 10)
UNUSED = np.random.default_rng(0)


@pytest.fixture(scope="module")
def encoder():
    return TinyEncoder(hidden_size=16, layers=2).load()


@pytest.fixture
def rows(encoder):
    texts = ["a", "river and stone", "some more words", "x y", "apple", "the last of the texts"]
    ids = encoder.tokenizer(texts)["input_ids"]
    return [{"input_ids": i, "label": n % 3, "unseen": n > 2} for n, i in enumerate(ids)]


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


@pytest.mark.parametrize("packed", [False, True])
def test_the_mean_of_states_is_the_texts_own_packed_or_padded(packed, encoder, rows):
    objective = Classification(classes=6, pooling="mean")
    rows = [{**row, "label": number} for number, row in enumerate(rows)]
    batch = objective.collate(encoder, 4, packed=packed, on_cpu=True)(rows, UNUSED)
    body, found = encoder.body.eval(), {}
    with torch.no_grad():
        for part in batch.micro_batches:
            means = objective.features(body, part.inputs)
            found |= dict(zip(part.inputs["labels"].tolist(), means, strict=True))
        for label, row in enumerate(rows):
            mean = body(torch.tensor([row["input_ids"]])).last_hidden_state[0].mean(0)
            torch.testing.assert_close(found[label], mean, atol=1e-5, rtol=1e-5)


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


def mean_of(weights, counts=COUNTS):
    return sum(w * n for w, n in zip(weights, counts, strict=True)) / sum(counts)


def test_balanced_weights_are_those_of_scikit_learn():
    labels = [label for label, n in zip(range(3), COUNTS, strict=True) for _ in range(n)]
    wanted = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    found = class_weights("balanced", LABELS, COUNTS)
    assert found == pytest.approx(wanted.tolist())
    assert mean_of(found) == pytest.approx(1)


@pytest.mark.parametrize("asked", [[1, 2, 5], {"A": 1, "B": 2, 3: 5}, {"3": 5.0, "A": 1, "B": 2}])
def test_weights_keep_their_ratios_and_have_mean_1_over_the_examples(asked):
    found = class_weights(asked, LABELS, COUNTS)
    assert mean_of(found) == pytest.approx(1)
    assert [w / found[0] for w in found] == pytest.approx([1, 2, 5])


@pytest.mark.parametrize("given", [{False: 1, True: 5}, {"TRUE": 5, "false": 1}, [1, 5]])
def test_a_key_that_is_no_label_may_differ_from_one_in_case(given):
    weights = class_weights(given, ("False", "True"), (2, 2))
    assert weights == class_weights([1, 5], ("False", "True"), (2, 2))


def test_a_smoothed_target_is_shared_by_all_labels():
    head = torch.nn.Linear(5, 3).double()
    features, labels = torch.randn(8, 5).double(), torch.tensor([0, 1, 2, 2, 1, 0, 0, 1])
    targets = 0.7 * F.one_hot(labels, 3) + 0.3 / 3
    expected = -(targets * head(features).log_softmax(1)).sum(1)
    smoothed = Classification(3, label_smoothing=0.3).losses(None, head, features, labels)
    torch.testing.assert_close(smoothed, expected)


@pytest.mark.parametrize(
    ("dtype", "autocast"),
    [(torch.float64, False), (torch.float32, True), (torch.bfloat16, False)],
)
def test_weights_are_not_rounded_to_the_type_of_the_logits(dtype, autocast):
    weights = class_weights([1, 1.003, 2], LABELS, COUNTS)
    head, labels = torch.nn.Linear(5, 3).to(dtype), torch.tensor([0, 1, 2, 2, 1, 0, 0, 1])
    features, objective = torch.randn(8, 5, dtype=dtype), Classification(3, class_weights=weights)
    with torch.inference_mode():  # the weights are kept for training, too
        objective.losses(None, head, features, labels)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        plain = Classification(3).losses(None, head, features, labels)
        found = objective.losses(None, head, features, labels)
        found.mean().backward()
    exact = torch.float64 if dtype is torch.float64 else torch.float32
    assert found.dtype is exact
    assert torch.equal(found, plain * torch.tensor(weights, dtype=exact)[labels])
    assert head.weight.grad.isfinite().all()


def test_adjusted_logits_add_the_log_frequencies_of_the_labels():
    """The loss is `-log(n_y exp(f_y) / sum_c n_c exp(f_c))`, equation 10 of Menon et al. 2021."""
    head, features = torch.nn.Linear(5, 3).double(), torch.randn(8, 5).double()
    labels = torch.tensor([0, 1, 2, 2, 1, 0, 0, 1])
    weights = class_weights("balanced", LABELS, COUNTS)
    objective = Classification(3, class_weights=weights, logit_adjustment=True)
    shares = torch.tensor(COUNTS) * head(features).exp()
    expected = -(shares[range(8), labels] / shares.sum(1)).log()
    torch.testing.assert_close(objective.losses(None, head, features, labels), expected)


@pytest.mark.parametrize("micro", [3, 8])
def test_the_gradient_of_a_weighted_batch_does_not_depend_on_how_it_is_split(micro):
    """It is that of the sum of weighted losses, divided by the number of examples."""
    weights = class_weights([1, 4, 2], LABELS, COUNTS)
    objective = Classification(3, dropout=0, class_weights=weights)
    encoder = TinyEncoder(hidden_size=8, dropout=0).load()
    head = objective.new_head(encoder)
    texts = ["a", "river and stone", "some more words", "x y", "apple", "last", "b c d", "e"]
    ids = encoder.tokenizer(texts)["input_ids"]
    rows = [{"input_ids": own, "label": n % 3} for n, own in enumerate(ids)]
    batch = objective.collate(encoder, micro)(rows, np.random.default_rng(0))
    tasks = [Task("end", objective, head)]
    record = take_step(encoder.body, tasks, {"end": batch}, Uniform(["end"]))
    found = [p.grad.clone() for p in head.parameters()]

    (whole,) = objective.collate(encoder, 8)(rows, np.random.default_rng(0)).micro_batches
    logits = head(objective.features(encoder.body, whole.inputs))
    labels = whole.inputs["labels"]
    plain = F.cross_entropy(logits, labels, reduction="none")
    loss = (plain * torch.tensor(weights)[labels]).sum() / len(labels)
    torch.testing.assert_close(record.losses[0], loss.detach())
    for ours, wanted in zip(found, torch.autograd.grad(loss, head.parameters()), strict=True):
        torch.testing.assert_close(ours, wanted, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    "asked",
    [[1, 2], {"A": 1, "B": 2}, {"A": 1, "B": 2, "C": 1}, {"A": 1, "a": 1, "B": 2}, [1, 2, 0]],
)
def test_weights_that_do_not_fit_the_labels_are_refused(asked):
    with pytest.raises(UserError, match="class_weights"):
        class_weights(asked, LABELS, COUNTS)
