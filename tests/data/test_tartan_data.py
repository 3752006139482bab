"""Arguments of `TartanData` that nothing reads."""

from __future__ import annotations

import pytest

from tartan.data.tartan_data import TartanData
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM

ROWS = [{"text": f"text {n}", "label": "ab"[n % 2]} for n in range(20)]


@pytest.mark.parametrize("argument", [{"column": "body"}, {"size": 2}, {"size_seed": 1}])
@pytest.mark.parametrize("auxiliaries", [None, {"tapt": "task"}], ids=["none", "own text"])
def test_what_is_said_of_unlabelled_texts_needs_some(argument, auxiliaries, cache_dir):
    data = TartanData(
        ROWS, encoder="tiny", auxiliaries=auxiliaries, cache_dir=cache_dir, **argument
    )
    with pytest.raises(UserError, match=rf"^{next(iter(argument))} is for unlabelled texts, and "):
        _ = data.prepared


def test_a_whole_auxiliary_task_names_its_own_column(cache_dir):
    given = {"dapt": TextAuxiliary(objective=MaskedLM(), path="texts.csv")}
    data = TartanData(ROWS, encoder="tiny", auxiliaries=given, column="body", cache_dir=cache_dir)
    with pytest.raises(UserError, match=r"^column is for unlabelled texts, and "):
        _ = data.prepared


def test_where_one_auxiliary_task_is_of_such_texts_they_apply(cache_dir):
    given = {"tapt": "task", "dapt": [{"body": "some text of the domain"}] * 40}
    data = TartanData(
        ROWS, encoder="tiny", auxiliaries=given, column="body", size=2, cache_dir=cache_dir
    )
    rows = {name: len(examples.rows) for name, (_, examples) in data.prepared.auxiliaries.items()}
    assert rows == {"tapt": 12, "dapt": 24}
