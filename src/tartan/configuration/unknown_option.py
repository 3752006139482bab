"""Defines the error of an option that does not exist."""

from __future__ import annotations

from tartan.errors import UserError, printable


class UnknownOptionError(UserError):
    """An option does not exist.

    Attributes:
        option: its dotted name.
        instead: the end of the message: the option that is meant, or those that there are; or
            empty.
    """

    def __init__(self, option: str, instead: str = "") -> None:
        super().__init__(option, instead)  # all arguments, so that it can be pickled
        self.option, self.instead = option, instead

    def __str__(self) -> str:
        """Return the message."""
        return printable(f"there is no option {self.option}{self.instead or '; leave it out'}")
