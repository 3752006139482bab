"""The one exception whose message is meant for the person at the terminal."""


class UserError(Exception):
    """Bad input or an unreachable resource: one line that says what is wrong and what to do.

    `src.run` prints the message without a traceback and exits with status 1.
    """
