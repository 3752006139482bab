"""Ends a command with a line, also from Hydra's callbacks, of whose exceptions it only warns."""

from __future__ import annotations

import sys
from typing import NoReturn


def stop(reason: object) -> NoReturn:
    """Print the reason in one line and end the command.

    Raises:
        SystemExit: always; the exit code is 1.
    """
    print(f"error: {reason}", file=sys.stderr)
    raise SystemExit(1)
