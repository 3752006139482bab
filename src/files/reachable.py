"""Check for a connection, within seconds; messages say what works without one."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request

from src.errors import UserError

CONNECT_TIMEOUT_S = 5.0
"""Seconds a server has to answer before it counts as unreachable."""

OFFLINE = (
    "offline, use encoder=minilm (comes in a package) or encoder.name=FOLDER (written by "
    "save_pretrained), and task=docstrings or data_dir=FOLDER (holding the task's folder)"
)
"""What works without a connection, for the end of a message."""


def check_reachable(url: str, what: str, offline: str = OFFLINE) -> None:
    """Fail within `CONNECT_TIMEOUT_S` if nothing answers at `url`; proxies are respected.

    The clients that download retry for 20 seconds and more before they give up.

    Args:
        offline: what works without a connection, for the message.

    Raises:
        UserError: names `what`, the address and the offline alternatives.
    """
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        raise UserError(f"could not fetch {what}: HF_HUB_OFFLINE is set; {offline}")
    request = urllib.request.Request(url, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=CONNECT_TIMEOUT_S):
            pass
    except urllib.error.HTTPError:
        pass  # an error status is an answer: the caller's own request will say what is wrong
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"could not fetch {what}: no connection to {url}; {offline}") from error
