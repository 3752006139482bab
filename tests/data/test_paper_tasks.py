"""The paper's tasks: local files, downloads, checksums, domain text, and the real data."""

from __future__ import annotations

import hashlib
import json

import pytest

from tartan.data.paper_tasks import DomainFile, PaperTask
from tartan.errors import UserError
from tartan.settings import build
from tests.in_process import config_of
from tests.local_server import answering, closed_address, serving

SPLITS = ("train", "dev", "test")


@pytest.fixture(autouse=True)
def direct_connection(monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("no_proxy", "*")


def publish(folder):
    """Files of a task named `one`, as its authors would lay them out; gives their checksums."""
    folder.mkdir(parents=True)
    digests = {}
    for number, split in enumerate(SPLITS):
        rows = [{"text": f"{split} {i}", "label": "ab"[i % 2]} for i in range(number + 2)]
        path = folder / f"{split}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def task_of(tmp_path, sha256, url=None, domain=()):
    local = None if url else str(tmp_path / "data")
    files = {"public_url": url or "none", "cache_dir": str(tmp_path / "cache"), "data_dir": local}
    return PaperTask("one", "macro_f1", 32, sha256=sha256, domain=domain, **files)


def test_local_files_are_taken_if_their_checksums_are_right(tmp_path):
    task = task_of(tmp_path, publish(tmp_path / "data" / "one"))
    assert [len(getattr(task.load(), split)) for split in SPLITS] == [2, 3, 4]
    with (tmp_path / "data" / "one" / "test.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(UserError, match=r"test\.jsonl is not the published file"):
        task.load()


def test_a_download_is_checked_and_kept_and_needs_no_server_the_second_time(tmp_path):
    digests = publish(tmp_path / "www")
    published = tmp_path / "www" / "train.jsonl"
    content = published.read_bytes()
    published.write_bytes(content[:-5])
    with serving(tmp_path / "www") as address:
        task = task_of(tmp_path, digests, url=address)
        with pytest.raises(UserError, match="is not the published file"):
            task.load()
        published.write_bytes(content)
        first = task.load()
    assert [len(getattr(first, split)) for split in SPLITS] == [2, 3, 4]
    assert task.load().fingerprints == first.fingerprints


def test_a_download_that_ends_early_is_an_error_and_not_kept(tmp_path):
    domain = [DomainFile(1, "domain.txt", "domain.txt")]  # without a checksum
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome of the text"
    with answering(reply, times=99) as address:
        task = task_of(tmp_path, publish(tmp_path / "x"), url=address, domain=domain)
        with pytest.raises(UserError, match="could not fetch"):
            task.domain_file(1)
    assert not list(tmp_path.rglob("domain.txt"))


def test_without_a_connection_the_file_and_the_alternatives_are_named(tmp_path):
    task = task_of(tmp_path, publish(tmp_path / "x"), url=closed_address())
    with pytest.raises(UserError, match=r"train\.jsonl: no connection to .*task=docstrings"):
        task.load()


@pytest.mark.parametrize(
    ("size", "chosen"), [(0.5, 1), (10, 10), (11, 100), (500, 100), (None, 100)]
)
def test_the_smallest_domain_file_meant_for_the_size_is_chosen(size, chosen, tmp_path):
    domain = [DomainFile(size, f"domain_{size}x.txt", "public") for size in (100, 1, 10)]
    task = task_of(tmp_path, publish(tmp_path / "data" / "one"), domain=domain)
    for file in task.domain:
        (tmp_path / "data" / "one" / file.local).write_text("text\n")
    assert task.domain_file(size).name == f"domain_{chosen}x.txt"


def paper_task(name, data_dir):
    return build(config_of([f"task={name}", f"data_dir={data_dir}"]).task, "task")


@pytest.mark.parametrize(
    ("name", "counts", "classes", "seen"),
    [
        ("acl_arc", (1688, 114, 139), 6, 52),
        ("scierc", (3219, 455, 974), 7, None),
        ("chemprot", (4169, 2427, 3469), 13, None),
        ("hyperpartisan", (516, 64, 65), 2, 51),
    ],
)
def test_the_real_tasks_have_the_published_sizes(name, counts, classes, seen, real_data):
    task = paper_task(name, real_data).load()
    assert (len(task.train), len(task.dev), len(task.test)) == counts
    assert len(task.labels) == classes
    assert seen in (None, task.test.unseen.count(False))


@pytest.mark.parametrize("name", ["acl_arc", "scierc", "chemprot"])
def test_the_real_domain_text_has_a_line_for_each_training_example(name, real_data):
    task = paper_task(name, real_data)
    lines = task.domain_file(1).read_text(encoding="utf-8").splitlines()
    assert len(lines) >= len(task.load().train)
