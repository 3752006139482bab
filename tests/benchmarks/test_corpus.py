"""The bench of corpora builds corpora of the size that is set, and reads them."""

from __future__ import annotations

import gzip
import json

import pytest

from benchmarks.corpus import measure_build, measure_reading
from benchmarks.synthetic_articles import SyntheticArticles

WORDS = [f"{a}{b}" for a in "bcdfgh" for b in "aeiou"]


def records(folder):
    return [
        json.loads(line)
        for path in sorted(folder.iterdir())
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def test_articles_are_the_same_every_time(tmp_path):
    made_up = SyntheticArticles(WORDS, 3000, 3)
    assert made_up.write(tmp_path / "a") == 3
    assert made_up.write(tmp_path / "b") == 3
    (tmp_path / "b" / "articles_0001.jsonl.gz").unlink()
    assert made_up.write(tmp_path / "b") == 1
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.slow
def test_a_corpus_of_the_set_size_is_built_and_read(tmp_path):
    SyntheticArticles(WORDS, 3000, 2).write(tmp_path / "articles")
    built = measure_build(tmp_path / "articles", tmp_path / "corpus", 1)
    assert built["kept"] == pytest.approx(3000, rel=0.25)
    assert built["kept"] < built["made"]
    assert built["articles"] == len(records(tmp_path / "articles"))
    assert 0 < built["largest_mib"] <= built["all_mib"]
    encoder = {"_target_": "tartan.encoders.tiny.TinyEncoder"}
    read = measure_reading(tmp_path / "corpus", encoder, 3, 8, 32)
    assert (read["examples"], read["read"]) == (built["kept"], 24)
    assert read["start"] > 0
    assert read["peak_mib"] > 0
