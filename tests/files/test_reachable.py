"""Whether something answers, within seconds, and what the message says if not."""

from __future__ import annotations

import socket
import time

import pytest

from tartan.errors import UserError
from tartan.files.reachable import check_reachable
from tests.local_server import answering, closed_address, serving


@pytest.fixture(autouse=True)
def direct_connection(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("no_proxy", "*")


def test_a_closed_port_fails_within_seconds_and_names_the_alternatives():
    address = closed_address()
    start = time.monotonic()
    with pytest.raises(UserError) as caught:
        check_reachable(address, "encoder big-one")
    assert time.monotonic() - start < 6
    message = str(caught.value)
    for part in ("encoder big-one", address, "encoder=minilm", "task=docstrings", "data_dir="):
        assert part in message
    assert "\n" not in message


def test_a_server_that_never_answers_fails_within_seconds(monkeypatch):
    monkeypatch.setattr("tartan.files.reachable.CONNECT_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(UserError, match="no connection"):
            check_reachable(address, "anything")
        assert time.monotonic() - start < 3


def test_a_server_with_the_file_is_reachable(tmp_path):
    (tmp_path / "file").write_text("x")
    with serving(tmp_path) as address:
        check_reachable(f"{address}/file", "a file")


@pytest.mark.parametrize("address", ["hub.example.org", "localhost:8080/hub", ""])
def test_an_address_without_its_beginning_is_one_line(address):
    with pytest.raises(UserError, match=r"a file: .* is no address .* https:// \(HF_ENDPOINT"):
        check_reachable(address, "a file")


def test_an_error_status_is_an_answer(tmp_path):
    with serving(tmp_path) as address:
        check_reachable(f"{address}/missing", "a file")


@pytest.mark.parametrize("reply", [b"", b"SSH-2.0-something\r\n"])
def test_a_server_that_does_not_speak_http_is_not_reachable(reply):
    with answering(reply) as address, pytest.raises(UserError, match="a file"):
        check_reachable(address, "a file")


@pytest.mark.parametrize("value", ["1", "true", "YES"])
def test_offline_mode_fails_without_a_look_at_the_network(value, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    with serving(tmp_path) as address, pytest.raises(UserError, match="HF_HUB_OFFLINE is set"):
        check_reachable(address, "a file")


def test_offline_mode_off_by_name_is_off(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with serving(tmp_path) as address:
        check_reachable(address, "a file")
