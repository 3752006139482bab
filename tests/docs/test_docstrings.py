"""What is read from docstrings."""

from __future__ import annotations

import pytest

from docs.builder.api_pages import markdown_code
from docs.builder.docstrings import arguments
from tartan.data.file_task import FileTask
from tartan.encoders.tiny import TinyEncoder


def test_arguments_of_the_classes_it_inherits_from_are_known():
    known = arguments(FileTask)
    assert known["metric"].startswith("the metric by which")
    assert "validation" in known["dev"]


def test_a_reference_to_another_class_is_followed():
    assert arguments(TinyEncoder)["lr"].startswith("learning rates that suit this encoder")


def test_only_the_sections_of_arguments_are_read():
    class Thing:
        """Does this: that.

        Args:
            one: the first,
                on two lines.
            two: the second.

        Raises:
            ValueError: always.
        """

    assert arguments(Thing) == {"one": "the first, on two lines.", "two": "the second."}


def test_a_reference_to_a_class_that_is_not_there_fails():
    class Thing:
        """Does this.

        Args:
            one: see `NoSuchClass`.
        """

    with pytest.raises(LookupError, match="NoSuchClass"):
        arguments(Thing)


def test_code_in_a_docstring_is_shown_as_code_and_a_name_as_a_link():
    lines = ["`w_i <- w_i + eta` of `Meta`s, ``kept``, and `a", "b`."]
    markdown_code(lines)
    assert lines == [r"``w_i <- w_i + eta`` of :py:obj:`Meta`\ s, ``kept``, and ``a b``."]
