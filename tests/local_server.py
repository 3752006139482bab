"""A web server on the loopback interface, and addresses at which nothing answers."""

from __future__ import annotations

import functools
import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve `folder` and give its address; once left, nothing answers there."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def answering(reply: bytes, times: int = 1) -> Iterator[str]:
    """Give the address of something that sends `reply` to whoever connects, so many times."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        for _ in range(times):
            try:
                connection, _ = listener.accept()
            except OSError:  # it is closed
                return
            with connection:
                connection.recv(4096)
                connection.sendall(reply)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        thread.join(timeout=5 if times == 1 else 0)
        listener.close()


def closed_address() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
