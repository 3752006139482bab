"""Composed objectives predict the right targets, from states that hidden tokens do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import TinyEncoder, letter_pair_tokenizer
from tartan.kernels.attention import use_kernels
from tartan.objectives.composed import Bidirectional
from tartan.objectives.layout import is_packed, spans
from tests.encoders.bodies import random_body
from tests.objectives.spaces import space

SPACE = space("aang_td_ed")
MEMBERS = {name: own.objective for name, own in SPACE.members("aang").items()}
HIDING = sorted(
    name
    for name, objective in MEMBERS.items()
    if objective.output.predicts_tokens and not isinstance(objective.representation, Bidirectional)
)
"""Those of which no predicted token can influence its own prediction, whatever the transform."""


def encoders():
    tiny = TinyEncoder(hidden_size=16, layers=3, dropout=0.0).load()
    roberta = TextEncoder("roberta", random_body("roberta").eval(), letter_pair_tokenizer())
    dropping = TinyEncoder(hidden_size=16, layers=3, dropout=0.1).load()
    use_kernels(dropping.body)
    return {"tiny": tiny, "roberta": roberta, "dropping": dropping}


ENCODERS = encoders()
TINY = ENCODERS["tiny"]


def rows(count=5, shortest=6, longest=15, seed=0):
    rng = np.random.default_rng(seed)
    special = TINY.tokenizer
    found = []
    for _ in range(count):
        words = rng.choice(np.arange(5, len(special)), rng.integers(shortest, longest), False)
        ids = [special.cls_token_id, *words.tolist(), special.sep_token_id]
        found.append({"input_ids": ids, "label": int(rng.integers(3))})
    return found


def batch_of(name, encoder=TINY, examples=None, micro=1000, seed=0, **options):
    objective = MEMBERS[name]
    collate = objective.collate(encoder, micro, **options)
    return collate(rows() if examples is None else examples, np.random.default_rng(seed))


def whole(name, **options):
    (part,) = batch_of(name, **options).micro_batches
    return part


def origin(part, examples):
    """Return, for each target, its text (in the part's order) and its position there."""
    by_length = sorted(examples, key=lambda row: len(row["input_ids"]))
    found = []
    owners = torch.bucketize(part.inputs["positions"], spans(part.inputs)[0], right=True) - 1
    for row, target in zip(owners, part.inputs["targets"], strict=True):
        ids = by_length[int(row)]["input_ids"]
        (place,) = [p for p, token in enumerate(ids) if token == int(target)]
        found.append((int(row), place))
    return found


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("name", HIDING)
def test_no_predicted_token_reaches_its_own_prediction(name, kind, packed):
    """Compute the gradient of each prediction by the input embedding of the predicted token.

    Tokens of a text differ from each other, so that a target tells its position.
    """
    encoder, objective = ENCODERS[kind], MEMBERS[name]
    examples = rows(3)
    part = whole(name, encoder=encoder, examples=examples, packed=packed, on_cpu=True)
    assert is_packed(part.inputs) == packed
    starts, lengths = spans(part.inputs)
    seen: list[torch.Tensor] = []

    def keep(module, args, output):
        seen.append(output)

    handle = encoder.body.get_input_embeddings().register_forward_hook(keep)
    try:
        features = objective.features(encoder.body, part.inputs)
    finally:
        handle.remove()
    reached_others = 0
    for index, (row, place) in enumerate(origin(part, examples)):
        direction = torch.randn(features.shape[1], generator=torch.Generator().manual_seed(index))
        (gradient,) = torch.autograd.grad(features[index] @ direction, seen[0], retain_graph=True)
        size = gradient.flatten(0, 1).abs().amax(dim=-1)
        assert size[starts[row] + place] == 0
        own = size[starts[row] : starts[row] + lengths[row]]
        assert size.count_nonzero() == own.count_nonzero()
        reached_others += int(own.count_nonzero())
    assert reached_others >= len(features)  # it is predicted from something


@pytest.mark.parametrize("name", [n for n in MEMBERS if n.startswith("task")])
def test_targets_and_positions_line_up_in_every_micro_batch(name):
    examples = rows(11)
    batch = batch_of(name, examples=examples, micro=3)
    assert len(batch.micro_batches) == 4
    by_length = sorted(examples, key=lambda row: len(row["input_ids"]))
    start = 0
    for part in batch.micro_batches:
        inputs = part.inputs
        count, width = inputs["input_ids"].shape
        members = by_length[start : start + count]
        start += count
        assert part.units == len(inputs["positions"]) == len(inputs["targets"])
        if name.endswith("end_label"):
            assert inputs["targets"].tolist() == [row["label"] for row in members]
            assert (inputs["positions"] % width == 0).all()
            continue
        for position, (row, place) in zip(
            inputs["positions"].tolist(), origin(part, members), strict=True
        ):
            shift = {"left_to_right": -1, "right_to_left": 1}.get(name.split("-")[2], 0)
            if "random_factorised" in name:
                assert position % width >= len(members[row]["input_ids"])
                assert inputs["position_ids"].flatten()[position] == place
                assert inputs["input_ids"].flatten()[position] == TINY.tokenizer.mask_token_id
            else:
                assert position == row * width + place + shift


@pytest.mark.parametrize("data", ["task", "domain"])
@pytest.mark.parametrize("transform", SPACE.transforms)
def test_objectives_with_the_same_text_and_transform_see_the_same_tokens(data, transform):
    examples = rows()
    seen = {}
    for name in MEMBERS:
        if name.startswith(f"{data}-{transform}-"):
            part = whole(name, examples=examples)
            longest = max(len(row["input_ids"]) for row in examples)
            seen[name] = part.inputs["input_ids"][:, :longest].clone()
            if "random_factorised" in name:  # without its queries
                for row, ids in enumerate(sorted((e["input_ids"] for e in examples), key=len)):
                    seen[name][row, len(ids) :] = TINY.tokenizer.pad_token_id
    first, *others = seen.values()
    assert len(others) >= 3
    assert all(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("name", [n for n in MEMBERS if n.startswith("task")])
def test_rows_do_not_depend_on_those_after_them(name):
    examples = sorted(rows(8), key=lambda row: len(row["input_ids"]))
    few, many = whole(name, examples=examples[:3]), whole(name, examples=examples)
    count, width = few.inputs["input_ids"].shape
    places = (slice(count), slice(width), slice(width))
    for key in few.inputs.keys() - {"positions", "targets"}:
        found = many.inputs[key][places[: many.inputs[key].dim()]]
        assert torch.equal(few.inputs[key], found), key
    assert torch.equal(few.inputs["targets"], many.inputs["targets"][: few.units])


@pytest.mark.parametrize("name", MEMBERS)
def test_masks_of_pairs_are_packed_on_a_cpu_only(name):
    def forms(**options):
        return {is_packed(part.inputs) for part in batch_of(name, **options).micro_batches}

    assert forms(packed=True, on_cpu=True) == {True}
    assert forms(packed=True, on_cpu=False) == {"bidirectional" in name}
    assert forms(packed=False, on_cpu=True) == {False}


def test_random_factorisation_keeps_its_share_of_pairs_and_none_of_a_position_with_itself():
    part = whole("task-none-random_factorised-end_label", examples=rows(40, 14, 15))
    pair_mask = part.inputs["pair_mask"][:, :, 1:]
    assert pair_mask.float().mean() == pytest.approx(0.6 * 15 / 16, abs=0.02)
    assert not pair_mask.diagonal(offset=-1, dim1=1, dim2=2).any()
    assert part.inputs["pair_mask"][:, :, 0].all()
