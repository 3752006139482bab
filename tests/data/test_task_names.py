"""Names of auxiliary tasks."""

from __future__ import annotations

import pytest

from tartan.data.task_names import check_task_name
from tartan.errors import UserError


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("size", "auxiliary.size holds for all"),
        ("decontaminate", "auxiliary.decontaminate holds for all"),
        ("end_task", "the labelled task"),
        ("meta_head", "a cost"),
        ("", "letters, digits"),
        ("a.b", "letters, digits"),
        ("second tapt", "letters, digits"),
        ("loss/a", "letters, digits"),
        ("type", "ModuleDict"),
        ("training", "ModuleDict"),
    ],
)
def test_a_name_that_something_else_has_is_refused_with_the_reason(name, why):
    with pytest.raises(UserError, match=rf"cannot be named {name!r}: .*{why}"):
        check_task_name(name)


@pytest.mark.parametrize("name", ["dapt", "news-2024", "Fachtexte_ä", "task-mask-a-b", "meta"])
def test_any_other_is_taken(name):
    check_task_name(name)
