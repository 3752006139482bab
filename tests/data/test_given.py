"""Texts that a program hands over itself are checked like those in files."""

from __future__ import annotations

import datasets
import pytest

from src.data.given import auxiliary_of
from src.data.text_auxiliary import TextAuxiliary
from src.errors import UserError
from src.objectives.masked_lm import MaskedLM


@pytest.mark.parametrize(
    ("given", "column", "message"),
    [
        (datasets.Dataset.from_dict({"text": [1, 2]}), None, "column 'text' holds int64, not text"),
        (datasets.Dataset.from_dict({"a": ["x"]}), None, r"no column 'text', only \['a'\]"),
        (datasets.Dataset.from_dict({"a": ["x"]}), "b", r"no column 'b', only \['a'\]"),
        (["fine", "half \ud800"], None, "half of a surrogate pair"),
        ([], None, "holds no texts"),
        ({"a": 1}, None, "must be 'task'"),
        (MaskedLM(), None, r"or a TextAuxiliary\(objective=..., path=...\) .* got MaskedLM"),
        (TextAuxiliary(objective=MaskedLM()), None, r"names no text; give it path=\.\.\."),
    ],
)
def test_what_is_no_text_is_one_line(given, column, message):
    with pytest.raises(UserError, match=message) as caught:
        auxiliary_of(given, "dapt", column, 1)
    assert "dapt" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_the_named_column_is_the_text():
    given = datasets.Dataset.from_dict({"text": ["no"], "body": ["yes"]})
    assert auxiliary_of(given, "dapt", "body", 1).corpus.texts.to_dict() == {"text": ["yes"]}
