"""What is read from docstrings."""

from __future__ import annotations

from docs.builder.docstrings import arguments
from tartan.encoders.tiny import TinyEncoder


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
