"""Checks within seconds whether a server answers."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request

from tartan.errors import UserError

CONNECT_TIMEOUT_S = 5.0
"""Time after which a server that does not answer counts as unreachable [s]."""

OFFLINE = (
    "offline, use encoder=minilm (comes in a package) or encoder.name=FOLDER (written by "
    "save_pretrained; in a program encoder='FOLDER'), and task=docstrings or data_dir=FOLDER "
    "(holding the task's folder)"
)
"""Advice at the end of a message, for a machine without a connection."""


def check_reachable(url: str, what: str, offline: str = OFFLINE) -> None:
    """Check that a server answers at `url` within `CONNECT_TIMEOUT_S`; proxies are respected.

    The clients that download would retry for 20 seconds and more before they give up.

    Args:
        url: the address.
        what: words for the thing to fetch, for the message.
        offline: what works without a connection, for the message.

    Raises:
        UserError: no server answers, or the address is none; the message names `what`, the
            address and, where no server answers, `offline`.
    """
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        raise UserError(f"could not fetch {what}: HF_HUB_OFFLINE is set; {offline}")
    if not url.startswith(("https://", "http://")):
        raise UserError(
            f"could not fetch {what}: {url} is no address of a server; one begins with https:// "
            "(HF_ENDPOINT sets the Hub's)"
        )
    request = urllib.request.Request(url, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=CONNECT_TIMEOUT_S):
            pass
    except urllib.error.HTTPError:
        pass  # an error status is an answer: the caller's own request will say what is wrong
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"could not fetch {what}: no connection to {url}; {offline}") from error
