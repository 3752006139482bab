"""How a step's micro-batches are shared out."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tartan.core.task import Batch, MicroBatch, StepBatch
from tartan.data.batches import share_of


def batch_of(widths):
    parts = [
        MicroBatch({"input_ids": torch.ones(2, width)}, units=width, examples=2) for width in widths
    ]
    return Batch(parts, 2 * len(parts), tokens=2 * sum(widths))


widths = st.lists(st.integers(1, 20), min_size=1, max_size=7)


@given(tasks=st.lists(widths, min_size=1, max_size=3), meta=widths, count=st.integers(1, 5))
def test_every_micro_batch_goes_to_one_process_and_keeps_its_number(tasks, meta, count):
    whole = StepBatch(
        4,
        {str(i): batch_of(w) for i, w in enumerate(tasks)},
        meta_batch=batch_of(meta),
        second={"0": batch_of(tasks[0])},
    )
    shares = [share_of(whole, rank, count) for rank in range(count)]
    for of in (*(lambda s, n=n: s.tasks[n] for n in whole.tasks), lambda s: s.meta_batch):
        all_parts = of(whole).micro_batches
        numbers = [number for share in shares for number, _ in of(share).numbered]
        assert sorted(numbers) == list(range(len(all_parts)))
        for share in shares:
            own = of(share)
            assert list(own.numbers) == sorted(own.numbers)
            assert all(part is all_parts[number] for number, part in own.numbered)
            assert own.units == of(whole).units
            assert own.examples_of_all == of(whole).examples_of_all
            assert (own.examples, own.tokens) == (of(whole).examples, of(whole).tokens)
    assert all(share.step == 4 and share.meta_head_batch is None for share in shares)


def test_a_batch_without_any_unit_has_no_pass():
    whole = StepBatch(0, {"a": batch_of([3]), "b": Batch([], 2)})
    for rank in range(2):
        share = share_of(whole, rank, 2, equally_often=True)
        assert not [*share.tasks["b"].micro_batches, *share.tasks["b"].fillers]
        assert len(share.tasks["a"].micro_batches) + len(share.tasks["a"].fillers) == 1


@given(tasks=st.lists(widths, min_size=1, max_size=3), count=st.integers(1, 5))
def test_no_process_has_more_than_a_micro_batch_beyond_another(tasks, count):
    whole = StepBatch(0, {str(i): batch_of(w) for i, w in enumerate(tasks)})
    loads = [
        sum(
            part.inputs["input_ids"].numel()
            for batch in share_of(whole, rank, count).tasks.values()
            for part in batch.micro_batches
        )
        for rank in range(count)
    ]
    longest = 2 * max(width for parts in tasks for width in parts)
    assert max(loads) - min(loads) <= longest
