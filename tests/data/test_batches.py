"""Batches as a function of seed, stage, task and step."""

from __future__ import annotations

from functools import partial

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, DataLoader

from tartan.core.task import Batch, MicroBatch, StepBatch
from tartan.data.batches import (
    BatchNeeds,
    EvaluationBatches,
    StepBatches,
    TaskExamples,
    rows_at,
    share_of,
)
from tartan.data.task_data import StepLoader
from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.classification import Classification
from tartan.objectives.masked_lm import MaskedLM


@pytest.fixture(scope="module")
def encoder():
    return TinyEncoder(hidden_size=8, layers=1).load()


def examples(count=23, seed=0):
    rng = np.random.default_rng(seed)
    ids = [[2, *rng.integers(5, 500, rng.integers(1, 12)).tolist(), 3] for _ in range(count)]
    labels = rng.integers(0, 3, count).tolist()
    unseen = [bool(i % 2) for i in range(count)]
    return datasets.Dataset.from_dict({"input_ids": ids, "label": labels, "unseen": unseen})


def batches(encoder, *, seed=0, stage="joint", dapt="dapt", micro=4, steps=12, meta=True):
    classify = Classification(classes=3).collate(encoder, micro)
    mask = MaskedLM().collate(encoder, micro)
    end = TaskExamples(examples(), classify, 7)
    tasks = {"end_task": end, dapt: TaskExamples(examples(31, 1), mask, 5)}
    validation = TaskExamples(examples(9, 2), classify, 4) if meta else None
    return StepBatches(tasks, validation, steps, seed, BatchNeeds(stage, tuple(tasks)))


def steps_of(tasks, steps, meta=None, stage="joint", **needs):
    return StepBatches(tasks, meta, steps, 0, BatchNeeds(stage, tuple(tasks), **needs))


def flat(batch):
    """A batch as nested lists."""
    parts = [
        ({k: v.tolist() for k, v in part.inputs.items()}, part.units)
        for part in batch.micro_batches
    ]
    return parts, batch.examples, batch.tokens


def flat_step(step):
    tasks = {name: flat(batch) for name, batch in step.tasks.items()}
    return step.step, tasks, None if step.meta_batch is None else flat(step.meta_batch)


def test_any_step_is_the_same_whichever_steps_were_looked_at_before(encoder):
    in_order = [flat_step(step) for step in map(batches(encoder).__getitem__, range(12))]
    shuffled = batches(encoder)
    for step in np.random.default_rng(0).permutation(12).tolist():
        assert flat_step(shuffled[step]) == in_order[step]
    assert flat_step(batches(encoder)[11]) == in_order[11]


@pytest.mark.parametrize("change", [{"seed": 1}, {"stage": "other"}])
def test_another_seed_or_stage_draws_other_batches_of_every_kind(change, encoder):
    first, second = flat_step(batches(encoder)[0]), flat_step(batches(encoder, **change)[0])
    assert first[1]["end_task"] != second[1]["end_task"]
    assert first[1]["dapt"] != second[1]["dapt"]
    assert first[2] != second[2]
    one, other = batches(encoder)[0], batches(encoder, dapt="other")[0]
    assert flat(one.tasks["dapt"]) != flat(other.tasks["other"])
    assert flat(one.tasks["end_task"]) == flat(other.tasks["end_task"])


def masked_rows(batch):
    """Each example of a masked batch, without padding, with its places and targets."""
    rows = []
    for part in batch.micro_batches:
        ids, mask = part.inputs["input_ids"], part.inputs["attention_mask"]
        width = ids.shape[1]
        chosen = list(
            zip(part.inputs["positions"].tolist(), part.inputs["targets"].tolist(), strict=True)
        )
        for row in range(len(ids)):
            places = [(p % width, t) for p, t in chosen if p // width == row]
            rows.append((ids[row][mask[row] == 1].tolist(), places))
    return sorted(row for row in rows if row[1])


@pytest.mark.parametrize("micro", [1, 3])
def test_the_masks_do_not_depend_on_the_micro_batch_size(micro, encoder):
    for step in range(6):
        whole = batches(encoder, micro=64)[step].tasks["dapt"]
        parts = batches(encoder, micro=micro)[step].tasks["dapt"]
        assert masked_rows(parts) == masked_rows(whole)
        assert (parts.units, parts.examples) == (whole.units, whole.examples) == (whole.units, 5)
        assert parts.tokens <= whole.tokens  # a part without a masked token is left out


@pytest.mark.parametrize("size", [4, 100])
def test_an_evaluation_has_every_example_once(size, encoder):
    data = examples()
    collate = Classification(classes=3).collate(encoder, size)
    parts = EvaluationBatches(TaskExamples(data, collate, size))
    found = []
    for index in range(len(parts)):
        inputs = parts[index].inputs
        assert len(inputs["labels"]) == parts[index].units <= size
        for row in range(parts[index].units):
            ids = inputs["input_ids"][row][inputs["attention_mask"][row] == 1].tolist()
            found.append((ids, inputs["labels"][row].item(), inputs["unseen"][row].item()))
    expected = zip(data["input_ids"], data["label"], data["unseen"], strict=True)
    assert sorted(found) == sorted(expected)


def test_loader_processes_build_what_one_process_builds(encoder, tmp_path):
    examples().save_to_disk(str(tmp_path / "data"))
    data = datasets.load_from_disk(str(tmp_path / "data"))  # memory-mapped, as in a run
    tasks = {"tapt": TaskExamples(data, MaskedLM().collate(encoder, 4), 6)}

    def through(workers):
        steps = steps_of(tasks, 9, stage="tapt")
        torch.manual_seed(workers)  # must not matter
        return [flat_step(s) for s in DataLoader(steps, batch_size=None, num_workers=workers)]

    alone = through(0)
    assert [step for step, _, _ in alone] == list(range(9))
    assert through(2) == alone


def test_a_loader_keeps_a_process_s_share_of_each_step(encoder):
    steps = batches(encoder, micro=2, steps=3)
    share = partial(share_of, rank=1, count=2)
    loader = StepLoader(steps, lambda: 4, collate_fn=share, num_workers=2)
    kept = [flat_step(step) for step in loader]
    assert kept == [flat_step(share(steps[step])) for step in (4, 5, 6)]
    assert kept != [flat_step(steps[step]) for step in (4, 5, 6)]


def marked(count):
    """Examples that can be told apart: each has its own token."""
    return datasets.Dataset.from_dict(
        {"input_ids": [[2, 5 + i, 3] for i in range(count)], "label": [i % 3 for i in range(count)]}
    )


def tokens_of(batch):
    return {int(ids[1]) for part in batch.micro_batches for ids in part.inputs["input_ids"]}


@given(st.integers(0, 40))
def test_the_batch_apart_shares_no_example_with_its_task_s(encoder, step):
    classify = Classification(classes=3).collate(encoder, 4)
    tasks = {"end_task": TaskExamples(marked(23), classify, 9)}
    drawn = steps_of(tasks, 41, meta_head_examples=6)[step]
    assert len(tokens_of(drawn.meta_head_batch)) == 6
    assert not tokens_of(drawn.meta_head_batch) & tokens_of(drawn.tasks["end_task"])


def test_second_batches_are_drawn_independently_of_the_first(encoder):
    classify = Classification(classes=3).collate(encoder, 4)
    tasks = {
        "end_task": TaskExamples(marked(40), classify, 6),
        "dapt": TaskExamples(marked(40), classify, 5),
    }
    with_them = steps_of(tasks, 30, second=True)
    without = steps_of(tasks, 30)
    shared = 0
    for step in range(30):
        drawn = with_them[step]
        assert flat_step(drawn) == flat_step(without[step])
        assert {name: batch.examples for name, batch in drawn.second.items()} == {
            "end_task": 6,
            "dapt": 5,
        }
        own, other = (tokens_of(batches["end_task"]) for batches in (drawn.tasks, drawn.second))
        shared += len(own & other)
    # 30 x 6 x 6 / 40 = 27 by chance: neither the same batches nor kept apart
    assert 10 < shared < 60
    assert without[0].second is None


def test_rows_of_several_corpora_can_be_had_in_any_order():
    texts = datasets.Dataset.from_dict({"text": ["a", "bc"]}).with_transform(
        lambda columns: {"input_ids": [[len(text)] for text in columns["text"]]}
    )
    parts = [datasets.Dataset.from_dict({"input_ids": [[7], [8], [9], [10]]}), texts]
    whole = [[7], [8], [9], [10], [1], [2]]
    indices = [5, 4, 0, 3, 3, 1]
    assert rows_at(ConcatDataset(parts), indices) == [{"input_ids": whole[i]} for i in indices]


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
