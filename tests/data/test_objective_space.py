"""Spaces of objectives: how many are legal, what they share, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tartan.data.objective_space import is_legal
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tests.encoders.bodies import random_body
from tests.objectives.spaces import space


@pytest.mark.parametrize(("name", "count"), [("aang_td", 24), ("aang_td_ed", 40)])
def test_spaces_hold_as_many_objectives_as_can_be_counted(name, count):
    members = space(name).members("aang")
    assert len(members) == count
    assert len({(m.source.name, m.objective) for m in members.values()}) == count


def test_what_is_illegal():
    whole = space("aang_td_ed")
    members = whole.members("aang")
    for data, text in whole.data.items():
        for representation, how in whole.representations.items():
            for output, what in whole.outputs.items():
                expected = output == "denoise" or (
                    data == "task" and representation in ("bidirectional", "random_factorised")
                )
                assert is_legal(text, how, what) == expected
                assert (f"{data}-mask-{representation}-{output}" in members) == expected


def test_objectives_share_texts_heads_and_draws():
    members = space("aang_td_ed").members("aang")
    assert len({id(m.source) for m in members.values()}) == 2
    assert {m.objective.shared_head for m in members.values()} == {"aang.denoise", "aang.end_label"}
    assert len({m.draw_group for m in members.values()}) == 8
    assert {m.kind for m in members.values()} == {"task", "domain"}


def test_a_name_with_a_hyphen_is_refused():
    whole = space("aang_td")
    named = replace(whole, data={"my-text": whole.data["task"]})
    with pytest.raises(UserError, match=r"my-text.* must hold no hyphen"):
        named.members("a")


@pytest.mark.parametrize("kind", ["deberta-v2", "mpnet"])
def test_encoders_that_take_no_such_masks_are_refused_by_name(kind):
    encoder = TextEncoder(f"my-{kind}", random_body(kind), letter_pair_tokenizer())
    members = space("aang_td").members("aang")
    members["task-mask-bidirectional-denoise"].check("a", encoder)
    with pytest.raises(UserError, match=f"encoder my-{kind} takes no masks"):
        members["task-mask-left_to_right-denoise"].check("a", encoder)


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_bert_and_roberta_like_encoders_are_taken(kind):
    encoder = TextEncoder(kind, random_body(kind), letter_pair_tokenizer())
    for name, member in space("aang_td_ed").members("aang").items():
        member.check(name, encoder)
    assert encoder.body.training == random_body(kind).training
