"""Masked language modelling: the choice of tokens, their corruption and the loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM


@pytest.fixture(scope="module")
def encoder():
    return TinyEncoder(hidden_size=16, layers=1).load()


def random_rows(tokenizer, count, longest=40, seed=0):
    rng, begin, end = np.random.default_rng(seed), tokenizer.cls_token_id, tokenizer.sep_token_id
    texts = [rng.integers(5, len(tokenizer), rng.integers(3, longest)) for _ in range(count)]
    return [{"input_ids": [begin, *text.tolist(), end]} for text in texts]


def generator(seed=0):
    return np.random.default_rng(seed)


def masked(encoder, rows, micro=10_000, seed=0, **options):
    return MaskedLM(**options).collate(encoder, micro)(rows, generator(seed))


def originals(rows, members, width, pad_id):
    return [rows[i]["input_ids"] + [pad_id] * (width - len(rows[i]["input_ids"])) for i in members]


def whole(encoder, rows, **options):
    """Return the inputs of one micro-batch, and the original ids at the same positions."""
    (part,) = masked(encoder, rows, **options).micro_batches
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]["input_ids"]))
    width = part.inputs["input_ids"].shape[1]
    before = originals(rows, by_length, width, encoder.tokenizer.pad_token_id)
    return part, torch.tensor(before)


def test_tokens_are_chosen_and_replaced_at_the_rates_of_bert(encoder):
    rows = random_rows(encoder.tokenizer, 4000, longest=60)
    part, before = whole(encoder, rows)
    maskable = sum(len(row["input_ids"]) - 2 for row in rows)
    chosen, after = part.inputs["positions"], part.inputs["input_ids"].flatten()
    assert len(chosen) / maskable == pytest.approx(0.15, abs=0.005)
    is_mask = after[chosen] == encoder.tokenizer.mask_token_id
    same = after[chosen] == before.flatten()[chosen]
    assert is_mask.float().mean().item() == pytest.approx(0.8, abs=0.015)
    assert same.float().mean().item() == pytest.approx(0.1, abs=0.015)
    assert (~is_mask & ~same).float().mean().item() == pytest.approx(0.1, abs=0.015)


def test_special_tokens_and_padding_are_never_chosen(encoder):
    part, before = whole(encoder, random_rows(encoder.tokenizer, 100), probability=1.0)
    special = torch.isin(before.flatten(), torch.tensor(encoder.tokenizer.all_special_ids))
    assert torch.equal(part.inputs["positions"].sort().values, (~special).nonzero().flatten())
    assert (part.inputs["attention_mask"] == 0).any()  # padding is special, too


def test_shares_of_more_than_all_tokens_and_a_tokenizer_without_a_mask_are_refused():
    with pytest.raises(UserError, match="sum to more than 1"):
        MaskedLM(masked=0.8, random=0.3)
    encoder = TinyEncoder(hidden_size=8, layers=1).load()
    encoder.tokenizer.mask_token = None
    with pytest.raises(UserError, match=r"encoder tiny has no mask token.*method=finetune"):
        MaskedLM().collate(encoder, 4)


def test_at_least_one_token_is_chosen(encoder):
    rows = [{"input_ids": [2, 77, 78, 3]}, {"input_ids": [2, 79, 3]}]
    batch = masked(encoder, rows, micro=1, probability=1e-6)
    assert batch.units == 1
    (part,) = batch.micro_batches
    assert part.inputs["targets"].item() in (77, 78, 79)


def test_the_loss_is_that_of_all_positions_with_those_not_chosen_ignored(encoder):
    rows = random_rows(encoder.tokenizer, 12)
    objective = MaskedLM()
    (part,) = objective.collate(encoder, 16)(rows, generator()).micro_batches
    head = objective.new_head(encoder)
    torch.nn.init.normal_(head.bias)
    body = encoder.body.eval()
    with torch.no_grad():
        features = objective.features(body, part.inputs)
        ours = objective.losses(body, head, features, objective.targets(part.inputs)).mean()
        hidden = body(
            input_ids=part.inputs["input_ids"], attention_mask=part.inputs["attention_mask"]
        ).last_hidden_state
        logits = head(hidden, body.get_input_embeddings().weight)
    labels = torch.full(part.inputs["input_ids"].shape, -100)
    labels.view(-1)[part.inputs["positions"]] = part.inputs["targets"]
    reference = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
    torch.testing.assert_close(ours, reference)
    assert features.shape == (part.units, encoder.hidden_size)


def masks_of(encoder, rows, batch_size, micro=10_000, seed=0, mask_seed=0):
    """Return the predicted and the corrupted tokens of each text, whatever batch it was in."""
    collate = MaskedLM().collate(encoder, micro, training=False, mask_seed=mask_seed)
    found = set()
    for start in range(0, len(rows), batch_size):
        for part in collate(rows[start : start + batch_size], generator(seed)).micro_batches:
            width = part.inputs["input_ids"].shape[1]
            for number, ids in enumerate(part.inputs["input_ids"]):
                own = part.inputs["positions"] // width == number
                places = (part.inputs["positions"][own] % width).tolist()
                seen = [i for i in ids.tolist() if i != encoder.tokenizer.pad_token_id]
                found.add((*seen, -1, *places, -1, *part.inputs["targets"][own].tolist()))
    return found


def test_masks_by_a_seed_are_a_function_of_seed_and_text_alone(encoder):
    rows = random_rows(encoder.tokenizer, 300)
    alone = masks_of(encoder, rows, batch_size=1)
    assert len(alone) == 300
    targets = [text[::-1].index(-1) for text in alone]
    assert min(targets) >= 1  # of every text; about 0.15 of all tokens
    assert 0.14 < sum(targets) / sum(len(row["input_ids"]) - 2 for row in rows) < 0.2
    assert masks_of(encoder, rows[::-1], batch_size=16, micro=5, seed=9) == alone
    assert masks_of(encoder, rows, batch_size=1, mask_seed=1) != alone
