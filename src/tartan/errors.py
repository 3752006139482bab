"""Defines the exception whose message is meant for the person at the terminal."""


class UserError(Exception):
    """Bad input or an unreachable resource: one line that says what is wrong and what to do.

    Every command prints the message without a traceback and exits with status 1.
    """

    def __str__(self) -> str:
        """Return the message, with control characters made visible: parts may come from files."""
        return printable(super().__str__())


class BusyError(UserError):
    """Raised where another process holds a lock."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; the name of its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def printable(text: str) -> str:
    """Return `text` with control characters, as in escape sequences, made visible."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
