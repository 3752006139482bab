"""The paper's tasks: local files, downloads, checksums, domain text, and the real data."""

from __future__ import annotations

import hashlib
import json

import hydra
import pytest
from hydra import compose, initialize_config_dir

from tartan.data.paper_tasks import DomainFile, PaperTask
from tartan.errors import UserError
from tests.conftest import ROOT
from tests.local_server import closed_address, serving

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


def domain_files(*sizes):
    return [DomainFile(size=s, local=f"domain_{s}x.txt", public=f"domain.{s}x.txt") for s in sizes]


def task_of(tmp_path, sha256, url="http://nowhere.invalid", local=True, domain=()):
    return PaperTask(
        name="one",
        metric="macro_f1",
        max_length=32,
        public_url=url,
        sha256=sha256,
        cache_dir=str(tmp_path / "cache"),
        data_dir=str(tmp_path / "data") if local else None,
        domain=domain,
    )


def test_local_files_with_the_right_checksums_are_taken(tmp_path):
    task = task_of(tmp_path, publish(tmp_path / "data" / "one"))
    assert task.tables()["train"].source == str(tmp_path / "data" / "one" / "train.jsonl")
    assert [len(getattr(task.load(), split)) for split in SPLITS] == [2, 3, 4]


def test_a_local_file_with_another_checksum_is_refused(tmp_path):
    task = task_of(tmp_path, publish(tmp_path / "data" / "one"))
    with (tmp_path / "data" / "one" / "test.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(UserError, match=r"test\.jsonl is not the published file"):
        task.tables()


def test_a_download_is_kept_and_needs_no_server_the_second_time(tmp_path):
    digests = publish(tmp_path / "www")
    with serving(tmp_path / "www") as address:
        task = task_of(tmp_path, digests, url=address, local=False)
        first = task.load()
    assert [len(getattr(first, split)) for split in SPLITS] == [2, 3, 4]
    assert task.load().fingerprints == first.fingerprints


def test_a_download_with_another_checksum_is_refused(tmp_path):
    digests = publish(tmp_path / "www")
    published = tmp_path / "www" / "train.jsonl"
    content = published.read_bytes()
    published.write_bytes(content[:-5])
    with serving(tmp_path / "www") as address:
        task = task_of(tmp_path, digests, url=address, local=False)
        with pytest.raises(UserError, match=r"not the published .*; fetch it again"):
            task.tables()
        published.write_bytes(content)
        task.tables()  # fetches what is there by now


def test_without_a_connection_the_file_and_the_alternatives_are_named(tmp_path):
    address = closed_address()
    task = task_of(tmp_path, publish(tmp_path / "x"), url=address, local=False)
    with pytest.raises(UserError, match=r"train\.jsonl: no connection to .*task=docstrings"):
        task.tables()


@pytest.mark.parametrize(
    ("size", "chosen"),
    [(0.5, 1), (10, 10), (11, 100), (500, 100), (None, 100)],
)
def test_the_smallest_domain_file_meant_for_the_size_is_chosen(size, chosen, tmp_path):
    task = task_of(tmp_path, publish(tmp_path / "data" / "one"), domain=domain_files(100, 1, 10))
    for file in task.domain:
        (tmp_path / "data" / "one" / file.local).write_text("text\n")
    assert task.domain_file(size).name == f"domain_{chosen}x.txt"


def paper_task(name, data_dir):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", overrides=[f"task={name}", f"data_dir={data_dir}"])
        return hydra.utils.instantiate(config.task, _convert_="all")


def seen(split):
    return split.unseen.count(False)


@pytest.mark.parametrize(
    ("name", "counts", "classes"),
    [
        ("acl_arc", (1688, 114, 139), 6),
        ("scierc", (3219, 455, 974), 7),
        ("chemprot", (4169, 2427, 3469), 13),
        ("hyperpartisan", (516, 64, 65), 2),
    ],
)
def test_the_real_tasks_have_the_published_sizes(name, counts, classes, real_data):
    task = paper_task(name, real_data).load()
    assert (len(task.train), len(task.dev), len(task.test)) == counts
    assert len(task.labels) == classes
    if name == "acl_arc":
        assert (seen(task.test), seen(task.dev)) == (52, 43)
    if name == "hyperpartisan":
        assert seen(task.test) == 51


@pytest.mark.parametrize("name", ["acl_arc", "scierc", "chemprot"])
def test_the_real_domain_text_has_a_line_for_each_training_example(name, real_data):
    task = paper_task(name, real_data)
    with task.domain_file(1).open(encoding="utf-8") as file:
        lines = sum(1 for _ in file)
    assert lines >= len(task.load().train)
