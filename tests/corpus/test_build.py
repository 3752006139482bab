"""A corpus: what is in it, that nothing but its settings and sources decides it, and resuming."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hydra import compose, initialize_config_dir

from tartan.corpus import build
from tartan.corpus.build import build_corpus
from tartan.corpus.steps import options_of
from tartan.data.corpus import read_manifest
from tartan.errors import UserError
from tartan.files import sha256_of
from tests.conftest import ROOT
from tests.corpus.made_up import (
    Killed,
    article,
    built,
    contents,
    texts_of,
    write_articles,
    write_shard,
)
from tests.programs import PYTHONPATH

pytestmark = pytest.mark.slow


@pytest.fixture
def articles(tmp_path):
    return write_articles(tmp_path / "articles")


@pytest.fixture
def _small_pieces(monkeypatch):
    """So few examples a batch that small corpora have several."""
    monkeypatch.setattr("tartan.corpus.steps.ROWS", 7)


def naive(folder, fields, split):
    """The slow way: all examples in the order of the shards, each text once."""
    seen = {}
    for path in sorted(folder.iterdir()):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            record = json.loads(line)
            if not fields or set(record["mag_field_of_study"] or []) & fields:
                texts = [p["text"] for p in record["body_text"]]
                seen |= dict.fromkeys(text for text in split(texts) if text)
    return list(seen)


def windows(texts):
    words = " ".join(texts).split()
    return [" ".join(words[i : i + 4]) for i in range(0, len(words), 4)]


SPLITS = {
    "paragraph": lambda texts: [" ".join(text.split()) for text in texts],
    "line": lambda texts: [" ".join(line.split()) for text in texts for line in text.split("\n")],
    "words": windows,
    "document": lambda texts: [" ".join(" ".join(texts).split())],
}


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize("by", SPLITS)
def test_it_holds_each_text_of_its_fields_once_where_it_came_first(articles, tmp_path, by):
    corpus = built(articles, tmp_path / "out", by=by, field_of_study=("biology", "PHYSICS"))
    expected = naive(articles, {"Biology", "Physics"}, SPLITS[by])
    assert texts_of(tmp_path / "out") == expected
    counts = corpus.counts
    assert counts["examples"]["kept"] == len(expected)
    assert counts["words"] == sum(len(text.split()) for text in expected)
    assert counts["examples"]["made"] == counts["examples"]["kept"] + sum(
        counts["examples"][reason] for reason in ("repeated", "too_short")
    )
    assert counts["examples"]["repeated"] > 0 or by == "document"


def test_the_manifest_says_what_was_read_kept_and_left_out(tmp_path):
    folder = tmp_path / "in"
    write_shard(
        folder / "a.jsonl",
        [
            article(0, ["one two", "one two", "three"]),
            b"",
            b"{",
            article(1, ["of another field"]),
            article(4, []),
            {"paper_id": "5", "mag_field_of_study": ["Computer Science"]},
        ],
    )
    corpus = built(
        folder, tmp_path / "out",
        field_of_study=("Computer Science",), bad_records="skip", min_words=2,
    )  # fmt: skip
    manifest = corpus
    assert manifest.counts["records"] == {
        "read": 5, "kept": 1, "other_field": 1, "no_text": 1, "bad": 2, "filtered": 0,
    }  # fmt: skip
    assert manifest.counts["examples"] == {
        "made": 3, "too_short": 1, "contaminated": 0, "repeated": 1, "kept": 1,
    }  # fmt: skip
    assert manifest.counts["words"] == 2
    (shard,) = manifest.shards
    path = tmp_path / "out" / shard.file
    assert (shard.sha256, shard.bytes) == (sha256_of(path), path.stat().st_size)
    (source,) = manifest.sources
    assert source["checksum"] == f"sha256:{sha256_of(folder / 'a.jsonl')}"


def test_a_bad_record_is_refused_with_its_place_and_can_be_skipped_then(tmp_path):
    lines = ['{"text": "caf\u00e9 \u4e2d"}'.encode(), b"", b'{"text": "\\ud800"}']
    path = write_shard(tmp_path / "in" / "a.jsonl.gz", lines)
    with pytest.raises(UserError, match="not JSON in UTF-8") as caught:
        built(path, tmp_path / "out")
    assert str(caught.value).startswith(f"{path}, line 3: ")
    corpus = built(path, tmp_path / "out", bad_records="skip")
    assert texts_of(tmp_path / "out") == ["caf\u00e9 \u4e2d"]
    assert corpus.counts["records"]["bad"] == 1


def test_metadata_in_files_of_their_own_choose_the_articles(tmp_path):
    records = [{"corpusid": n, "text": f"article {n}"} for n in range(30)]
    write_shard(tmp_path / "in" / "b.jsonl", records[15:])
    write_shard(tmp_path / "in" / "a.jsonl", records[:15])
    for part in (0, 1):
        write_shard(
            tmp_path / "meta" / f"{part}.jsonl.gz",
            [
                {"corpusid": n, "s2fieldsofstudy": [{"category": "Art" if n % 3 else "Law"}]}
                for n in range(part, 30, 2)
            ],
        )
    corpus = built(
        tmp_path / "in", tmp_path / "out", metadata=[tmp_path / "meta"], field_of_study=("Law",)
    )
    assert texts_of(tmp_path / "out") == [f"article {n}" for n in range(0, 30, 3)]
    assert corpus.counts["metadata"] == {"read": 30, "bad": 0}
    assert [source["name"] for source in corpus.metadata] == [
        f"{tmp_path}/meta/{part}.jsonl.gz" for part in (0, 1)
    ]


def command(sources, output, *options):
    return [
        sys.executable, "-m", "src.build_corpus", f"sources={sources}", f"output={output}",
        "decontaminate=null", *options,
    ]  # fmt: skip


def run(arguments, cwd):
    return subprocess.run(
        arguments, cwd=cwd, env={**os.environ, "PYTHONPATH": PYTHONPATH}, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


def test_processes_that_are_killed_leave_what_the_same_command_finishes(tmp_path):
    """Two processes and kill -9 in the middle, against one process undisturbed."""
    articles = write_articles(tmp_path / "articles", shards=4, articles=1500)
    options = ("field_of_study=[Computer Science]",)
    assert run(command(articles, tmp_path / "one", *options), tmp_path).returncode == 0
    two = command(articles, tmp_path / "two", *options, "workers=2")
    process = subprocess.Popen(
        two, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PYTHONPATH}, stdout=subprocess.DEVNULL
    )
    building = tmp_path / "two" / "building"
    until = time.monotonic() + 200
    while not list(building.glob("examples/*.json")) and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert building.is_dir()
    assert not (tmp_path / "two" / "manifest.json").exists()
    finished = run(two, tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "was begun before; going on" in finished.stdout
    assert contents(tmp_path / "two") == contents(tmp_path / "one")


def half_built(articles, output, monkeypatch, **options):
    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("tartan.corpus.steps.Steps.write_repeats", killed)
        with pytest.raises(Killed):
            built(articles, output, **options)


@pytest.mark.parametrize("finished", [False, True])
def test_other_settings_and_sources_are_refused(articles, tmp_path, monkeypatch, finished):
    output = tmp_path / "out"
    if finished:
        built(articles, output)
    else:
        half_built(articles, output, monkeypatch)
    for options, message in (
        ({"by": "line"}, "by"),
        ({"field_of_study": ("Art",)}, "field_of_study"),
    ):
        with pytest.raises(UserError, match=f"holds another corpus, of other {message};"):
            built(articles, output, **options)
    first = articles / "articles_0.jsonl.gz"
    before = first.read_bytes()
    write_shard(first, [{"text": "other"}])
    with pytest.raises(UserError, match="of other sources;"):
        built(articles, output)
    first.write_bytes(before)  # at another time
    built(articles, output)


def test_a_finished_corpus_is_found_and_checked(articles, tmp_path):
    output, said = tmp_path / "out", []
    built(articles, output)
    before = contents(output)
    built(articles, output, said.append, workers=2)
    assert said == [f"{output} holds this corpus, finished; comparing checksums"]
    assert contents(output) == before
    shard = output / read_manifest(output).shards[0].file
    shard.write_bytes(shard.read_bytes().replace(b"about", b"abuot", 1))
    with pytest.raises(UserError, match="is not what was written"):
        built(articles, output)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["sources=none.jsonl"], "name the articles and the corpus' folder"),
        (
            ["sources=none", "output=out", "decontaminate=null"],
            "sources: none: no files that end in",
        ),
        (["sources=x", "output=out"], "name the end task .*decontaminate=null"),
        (["sources=x", "examples.by=page"], "examples.by: "),
        (["sources=x", "output=y", "metadata=y"], "give field_of_study as well"),
    ],
)
def test_a_wrong_option_is_one_line(options, message):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("build_corpus", overrides=options)
    with pytest.raises(UserError, match=message):
        build_corpus(options_of(config), print)


def kill_itself(rank):
    """As a system without memory does."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_one_line_and_no_endless_wait(tmp_path):
    with pytest.raises(UserError, match=r"a process was killed.*a lower `workers`"):
        build._run(tmp_path, 2, kill_itself, 2)
