"""A number a text: how it is read, split, learned and exported."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tartan.data.file_task import FileTask
from tartan.data.kinds import KINDS
from tartan.data.regression import Regression, RegressionHead
from tartan.encoders.heads import ClassifierHead
from tartan.errors import UserError
from tartan.objectives.classification import Classification

KIND = KINDS["regression"]


def task_of(tmp_path, numbers, **options):
    rows = "".join(f"t{i},{number}\n" for i, number in enumerate(numbers))
    (tmp_path / "t.csv").write_text("text,score\n" + rows)
    options = {"kind": "regression", "label": "score", **options}
    return FileTask("toy", "spearman", 32, train=str(tmp_path / "t.csv"), **options).load()


def test_numbers_of_all_sizes_are_in_every_split(tmp_path):
    task = task_of(tmp_path, [f"{i}.5" for i in range(100)])
    assert (task.labels, task.label_counts) == (("value",), (60,))
    for split in (task.train, task.dev, task.test):
        numbers = np.ravel(split.labels)
        assert np.histogram(numbers, 10, (0, 100))[0].tolist() == [len(numbers) // 10] * 10
        assert all(text == f"t{int(n)}" for text, n in zip(split.texts, numbers, strict=True))
    folds = KIND.folds(list(range(40)), range(40), 4)
    assert np.bincount(folds).tolist() == [10] * 4


@pytest.mark.parametrize("wrong", ["many", "nan", "inf", "true"])
def test_what_is_no_number_is_refused(tmp_path, wrong):
    with pytest.raises(UserError):
        task_of(tmp_path, [*range(20), wrong])


def test_the_loss_is_in_deviations_and_the_exported_head_has_the_numbers():
    objective = KIND.objective(Classification(1, dropout=0.0), [[10.0], [30.0]])
    assert objective == Regression(1, 0.0, mean=20.0, deviation=10.0)
    head = RegressionHead(ClassifierHead(8, 1, 0.0), objective.mean, objective.deviation)
    features, targets = torch.randn(5, 8), 20 + 10 * torch.randn(5, 1)
    values = head(features)
    assert torch.allclose(head.exported()(features), values, atol=1e-5)
    expected = ((values - targets) / 10).square()[:, 0]
    assert torch.allclose(objective.losses(torch.nn.Identity(), head, features, targets), expected)
    for given, codes in ((Classification(1, class_weights=[1.0]), [[1], [2]]), (objective, [[1]])):
        with pytest.raises(UserError):
            KIND.objective(given, codes)
