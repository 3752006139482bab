"""The one exception whose message is meant for the person at the terminal."""


class UserError(Exception):
    """Bad input or an unreachable resource: one line that says what is wrong and what to do.

    `src.run` prints the message without a traceback and exits with status 1.
    """

    def __str__(self) -> str:
        """The message, in which nothing that was read from a file commands the terminal."""
        return printable(super().__str__())


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; its kind where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def printable(text: str) -> str:
    """`text` with control characters, escape sequences' first ones among them, made visible."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
