"""Several labels a text: how they are read, split, thresholded and scored."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from tartan.core.seeding import generator_for
from tartan.data.file_task import FileTask
from tartan.data.kinds import KINDS
from tartan.data.splits import iterative_split
from tartan.data.thresholds import best_thresholds, centred, judged_apart
from tartan.errors import UserError
from tartan.methods.parts import metrics_of

KIND = KINDS["multi_label"]


def task_of(tmp_path, name, content, **options):
    (tmp_path / name).write_text(content)
    options = {"kind": "multi_label", **options}
    return FileTask("toy", "macro_f1", 32, train=str(tmp_path / name), **options).load()


def test_the_three_forms_of_labels_are_one_task(tmp_path):
    """Lists, separated text, and a column of 0 and 1 for each; a text may have none."""
    labels = [("a", "b"), ("b",), (), ("a",)] * 10
    lists = "".join(
        json.dumps({"text": f"t{i}", "label": own[::-1]}) + "\n" for i, own in enumerate(labels)
    )
    text = "text,label\n" + "".join(f"t{i},{' ; '.join(own)}\n" for i, own in enumerate(labels))
    columns = "text,a,b\n" + "".join(
        f"t{i},{int('a' in own)},{'true' if 'b' in own else 'false'}\n"
        for i, own in enumerate(labels)
    )
    tasks = [
        task_of(tmp_path, "lists.jsonl", lists),
        task_of(tmp_path, "text.csv", text, separator=";"),
        task_of(tmp_path, "columns.csv", columns, label=["a", "b"]),
    ]
    assert len({task.digest() for task in tasks}) == 3
    for task in tasks:
        assert (task.labels, task.train.labels) == (("a", "b"), tasks[0].train.labels)
        rows = zip(task.train.texts, task.train.labels, strict=True)
        assert all(code == [int(n in labels[int(t[1:])]) for n in "ab"] for t, code in rows)
        assert task.label_counts == (12, 12)
    unlabelled = task_of(tmp_path, "text.csv", text, separator=";", empty_label="unlabelled")
    assert len(unlabelled.unlabelled) == 10


def test_what_would_be_read_wrongly_is_refused(tmp_path):
    text = "text,label\nx,a;b\ny,b\n"
    for content, options in (
        (text, {}),  # one label `a;b`?
        (text, {"kind": "single_label", "separator": ";"}),
        ("text,a,b\nx,1,2\n", {"label": ["a", "b"]}),
        ("text,a,b\nx,1,\n", {"label": ["a", "b"]}),
    ):
        with pytest.raises(UserError):
            task_of(tmp_path, "bad.csv", content, **options)


@given(st.lists(st.sets(st.sampled_from("abcde")), min_size=12, max_size=80), st.integers(0, 9))
def test_parts_have_their_sizes_and_labels_their_shares(labels, seed):
    sizes = [len(labels) - 2 * (len(labels) // 4), len(labels) // 4, len(labels) // 4]
    split = iterative_split(labels, range(len(labels)), sizes, generator_for(seed))
    assert Counter(split.tolist()) == {0: sizes[0], 1: sizes[1], 2: sizes[2]}
    totals = Counter(chain(*labels))
    (rarest, count) = min(totals.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0))
    there = sum(rarest in own for own, part in zip(labels, split, strict=True) if part == 0)
    assert abs(there - count * sizes[0] / len(labels)) <= 1


def test_shares_are_nearer_than_at_random_and_groups_stay_together():
    generator = np.random.default_rng(0)
    has = generator.random((300, 6)) < [0.02, 0.05, 0.1, 0.2, 0.4, 0.6]
    labels = [[f"l{i}" for i in np.flatnonzero(row)] for row in has]
    groups = [i // 2 for i in range(300)]
    folds = KIND.folds(labels, groups, 5)
    assert all(folds[i] == folds[i + 1] for i in range(0, 300, 2))
    spread = [np.std([has[folds == fold, label].sum() for fold in range(5)]) for label in range(6)]
    at_random = generator.permutation(150).repeat(2) % 5
    other = [
        np.std([has[at_random == fold, label].sum() for fold in range(5)]) for label in range(6)
    ]
    assert sum(spread) < sum(other) / 2
    kept = KIND.choose(labels, 40, 0, "toy")
    assert sum(kept) == 40


def test_thresholds_have_the_best_f1_and_move_to_one_half():
    generator = np.random.default_rng(1)
    scores = generator.random((60, 4)).round(2)  # with equal ones
    codes = (scores + generator.normal(0, 0.4, (60, 4)) > 0.7).astype(int)
    codes[:, 3] = 0
    found = best_thresholds(scores, codes)
    assert found[3] == 0.5
    for label in range(3):
        values = [
            sk.f1_score(codes[:, label], scores[:, label] > at) for at in np.linspace(0, 1, 501)
        ]
        assert sk.f1_score(codes[:, label], scores[:, label] > found[label]) == max(values)
    moved = centred(scores, found)
    assert ((moved > 0.5) == (scores > found)).all()
    assert (
        np.argsort(moved, axis=0, kind="stable") == np.argsort(scores, axis=0, kind="stable")
    ).all()

    # a text's threshold is of texts that are not its own: changing its code changes not its score
    texts = [f"text {number // 2}" for number in range(60)]
    before, codes[:2] = judged_apart(scores, codes, texts), 1 - codes[:2]
    after = judged_apart(scores, codes, texts)
    assert (before[:2] == after[:2]).all()
    assert (before != after).any()


def test_metrics_are_those_of_scikit_learn_at_the_chosen_thresholds():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 3, generator=generator)
    codes = (logits + torch.randn(50, 3, generator=generator) > 0.8).long()
    unseen = torch.arange(50) % 2 == 0
    metrics = metrics_of({}, "micro_precision", 3, KIND)
    for part in torch.arange(50).split(20):
        metrics.update(logits[part], codes[part], unseen[part])
    metrics.choose_thresholds()
    values = metrics.compute(any_unseen=True)
    scores, thresholds = logits.sigmoid().numpy(), metrics.chosen_thresholds()
    assert thresholds == best_thresholds(scores, codes.numpy()).tolist()
    above = scores > np.asarray(thresholds)
    for ending, part in (("", slice(None)), ("_unseen", unseen.numpy())):
        true, chosen = codes.numpy()[part], above[part]
        expected = {
            "macro_f1": sk.f1_score(true, chosen, average="macro"),
            "micro_f1": sk.f1_score(true, chosen, average="micro"),
            "micro_precision": sk.precision_score(true, chosen, average="micro"),
            "average_precision": sk.average_precision_score(true, scores[part]),
        }
        for name, value in expected.items():
            assert float(values[f"{name}{ending}"]) == pytest.approx(value, abs=1e-6)
    assert list(metrics.state_dict()) == ["thresholds"]
