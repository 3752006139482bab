"""Corpora in files of every kind, and the choice of a part of them."""

from __future__ import annotations

import gzip
import itertools
import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.corpus import Corpus, choose_part, load_corpus, load_corpus_from_hub
from tartan.data.tokenise import tokenise
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tests.local_server import closed_address

TEXTS = ["first line", "", "caf\u00e9, third", "last"]


def as_lines(texts):
    return "".join(text + "\n" for text in texts).encode()


def as_jsonl(texts, column="text"):
    return "".join(
        json.dumps({column: text, "id": i}) + "\n" for i, text in enumerate(texts)
    ).encode()


def as_csv(texts, separator):
    rows = "".join(f'{i}{separator}"{text}"\n' for i, text in enumerate(texts))
    return f"id{separator}text\n{rows}".encode()


def load(path, cache, column="text"):
    return load_corpus(path, column, cache)


def texts_of(corpus):
    return list(corpus.texts["text"])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.txt", as_lines(TEXTS)),
        ("c.v1.TXT", as_lines(TEXTS)),
        ("unended.txt", as_lines(TEXTS).rstrip(b"\n")),
        ("c.txt.gz", gzip.compress(as_lines(TEXTS))),
        ("c.jsonl", as_jsonl(TEXTS)),
        ("c.jsonl.gz", gzip.compress(as_jsonl(TEXTS))),
        ("part [1].txt", as_lines(TEXTS)),
        ("c.txt.zst", pa.Codec("zstd").compress(as_lines(TEXTS), asbytes=True)),
        ("c.csv", as_csv(TEXTS, ",")),
        ("c.CSV.gz", gzip.compress(as_csv(TEXTS, ";"))),
        ("c.tsv", as_csv(TEXTS, "\t")),
        ("c.json", json.dumps([{"text": text} for text in TEXTS]).encode()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_gives_its_texts_in_order(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    corpus = load(path, tmp_path / "cache")
    assert texts_of(corpus) == TEXTS
    assert corpus.source == str(path)
    assert corpus.texts.column_names == ["text"]
    assert corpus.texts.cache_files


def test_an_arrow_file_gives_its_texts(tmp_path):
    table = pa.table({"text": TEXTS})
    with pa.ipc.new_file(str(tmp_path / "c.arrow"), table.schema) as file:
        file.write_table(table)
    assert texts_of(load(tmp_path / "c.arrow", tmp_path / "cache")) == TEXTS


def test_a_saved_data_set_gives_its_texts(tmp_path):
    path, cache = tmp_path / "saved", tmp_path / "cache"
    datasets.Dataset.from_dict({"body": TEXTS, "id": [1, 2, 3, 4]}).save_to_disk(path)
    corpus = load(path, cache, "body")
    assert texts_of(corpus) == TEXTS
    datasets.Dataset.from_dict({"body": TEXTS[:2]}).save_to_disk(tmp_path / "other")
    assert load(tmp_path / "other", cache, "body").fingerprint != corpus.fingerprint
    with pytest.raises(UserError, match=r"saved has no column 'text', only 'body', 'id'"):
        load(path, cache)


def test_a_table_without_columns_holds_no_texts(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "c.parquet")
    with pytest.raises(UserError, match=r"c\.parquet holds no texts"):
        load(tmp_path / "c.parquet", tmp_path / "cache")


def test_a_missing_value_is_a_blank_text(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"text": null}\n{"id": 1}\n{"text": "a"}\n')
    assert texts_of(load(tmp_path / "c.jsonl", tmp_path / "cache")) == ["", "", "a"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_parquet_file_gives_its_texts(kind, tmp_path):
    pq.write_table(pa.table({"text": pa.array(TEXTS, kind)}), tmp_path / "c.parquet")
    assert texts_of(load(tmp_path / "c.parquet", tmp_path / "cache")) == TEXTS


def test_another_column_can_be_named(tmp_path):
    (tmp_path / "c.jsonl").write_bytes(as_jsonl(TEXTS, "body"))
    corpus = load(tmp_path / "c.jsonl", tmp_path / "cache", "body")
    assert corpus.texts.column_names == ["text"]
    assert texts_of(corpus) == TEXTS


def test_a_line_of_text_ends_at_a_newline_only(tmp_path):
    (tmp_path / "c.txt").write_text("a\x0cb\u2028c\x85d\nnext\n", encoding="utf-8")
    corpus = load(tmp_path / "c.txt", tmp_path / "cache")
    assert texts_of(corpus) == ["a\x0cb\u2028c\x85d", "next"]


@pytest.mark.parametrize("name", ["c.txt", "c.md", "c.jsonl"])
def test_a_byte_order_mark_is_no_part_of_the_text(name, tmp_path):
    line = '{"text": "first"}\n' if name.endswith("jsonl") else "first\n"
    (tmp_path / name).write_text(line, encoding="utf-8-sig")
    (text,) = load_corpus(tmp_path / name, "text", tmp_path / "cache").texts["text"]
    assert text.rstrip("\n") == "first"


def test_the_file_is_read_again_when_it_has_changed(tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("old\n")
    old = load(path, tmp_path / "cache")
    path.write_text("new\nlines\n")
    new = load(path, tmp_path / "cache")
    assert texts_of(new) == ["new", "lines"]
    assert old.fingerprint != new.fingerprint


def test_two_columns_of_a_file_do_not_share_their_tokens(tmp_path):
    rows = [{"title": "short", "body": "much longer than that"}]
    (tmp_path / "c.jsonl").write_text(json.dumps(rows[0]) + "\n")
    tokenizer, lengths = letter_pair_tokenizer(), []
    for column in ("title", "body"):
        corpus = load(tmp_path / "c.jsonl", tmp_path / "cache", column)
        tokens = tokenise(
            corpus.texts, corpus.fingerprint, tokenizer, 64, tmp_path / "cache", keep_blank=False
        )
        lengths.append(len(tokens[0]["input_ids"]))
    assert lengths[0] < lengths[1]


def test_a_file_read_as_lines_and_as_jsonl_does_not_share_its_tokens(tmp_path):
    fingerprints = []
    for name in ("c.txt", "c.jsonl"):
        (tmp_path / name).write_bytes(as_jsonl(TEXTS))
        fingerprints.append(load(tmp_path / name, tmp_path / "cache").fingerprint)
    assert fingerprints[0] != fingerprints[1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.txt", b"", "is empty"),
        ("c.jsonl", b"", "is empty"),
        ("c.txt", b"caf\xe9\n", "line 1: not UTF-8; save it as UTF-8, or: iconv "),
        ("c.txt.gz", b"not compressed", "cannot be read: Not a gzipped file"),
        ("c.jsonl", b'{"text": "a"}\n{"text": \n', "line 2: not JSON"),
        ("c.parquet", b"nonsense", r"\(Parquet\) cannot be read"),
        ("c.pdf", b"a,b\n", r"must end in \.txt, \.md, \.csv, \.tsv, \.jsonl"),
        ("c.gz", gzip.compress(b"a\n"), r"must end in \.txt"),
        ("c", b"a\n", r"must end in \.txt"),
        ("c.jsonl", as_jsonl(["a"], "body"), "has no field 'text', only 'body', 'id'; name it"),
        ("c.jsonl", b'{"text": 1}\n', "line 1: the field 'text' must be a string, not int"),
        ("c.jsonl", b'{"text": ["a", "b"]}\n', "line 1: .* must be a string, not list"),
        ("c.jsonl", b'{"text": {"en": "a"}}\n', "line 1: .* must be a string, not dict"),
        ("c.json", b'[{"text": 1}]', "row 1: the field 'text' must be a string, not int"),
        (
            "c.csv",
            b"words,id\na,1\n",
            "has no column 'text', only 'words', 'id'; name it, as in auxiliary.dapt.column=NAME",
        ),
        ("c.csv", b'text,id\n"a,1\n', "line 2: a double quote that opens in this row is never"),
        ("c.tsv", b"", "is empty"),
        ("c.csv", b"\n", "holds no texts"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_used_is_an_error_of_one_line(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        load(path, tmp_path / "cache")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"no unlabelled text at .*nowhere\.txt; name a"):
        load(tmp_path / "nowhere.txt", tmp_path / "cache")


def test_a_data_set_on_a_hub_that_does_not_answer_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", closed_address())
    with pytest.raises(UserError, match="could not fetch data set some/corpus: no connection"):
        load_corpus_from_hub("some/corpus", None, "train", "text", tmp_path)


def corpus_of(count, blank=()):
    texts = ["" if i in blank else f"text {i}" for i in range(count)]
    return Corpus("made up", datasets.Dataset.from_dict({"text": texts}), "abc")


@settings(max_examples=25)
@given(
    sizes=st.lists(st.floats(0.1, 20), min_size=2, max_size=5),
    seed=st.integers(0, 1000),
)
def test_a_smaller_size_is_a_subset_of_a_larger_one(sizes, seed):
    corpus = corpus_of(200)
    parts = [
        texts_of(choose_part(corpus, size, 10, seed, "size"))
        for size in sorted(sizes)
        if round(size * 10)
    ]
    assert [len(part) for part in parts] == [round(s * 10) for s in sorted(sizes) if round(s * 10)]
    for smaller, larger in itertools.pairwise(parts):
        assert set(smaller) <= set(larger)


def test_a_part_has_no_text_twice_and_keeps_the_order_of_the_file():
    part = texts_of(choose_part(corpus_of(100), 5, 10, 0, "size"))
    numbers = [int(text.split()[1]) for text in part]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 50


def test_the_part_is_a_function_of_the_seed():
    corpus = corpus_of(100)
    first, again, other = (choose_part(corpus, 5, 10, seed, "size") for seed in (0, 0, 1))
    assert texts_of(first) == texts_of(again)
    assert first.fingerprint == again.fingerprint
    assert texts_of(first) != texts_of(other)


def test_every_choice_has_its_own_fingerprint():
    corpus = corpus_of(100)
    parts = [choose_part(corpus, size, 10, seed, "size") for size in (1, 2) for seed in (0, 1)]
    assert len({part.fingerprint for part in [corpus, *parts]}) == 5


def test_all_is_the_whole_corpus():
    corpus = corpus_of(30)
    assert choose_part(corpus, None, 100, 0, "size") is corpus


def test_blank_rows_count():
    corpus = corpus_of(20, blank=range(0, 20, 2))
    assert len(choose_part(corpus, 2, 10, 0, "size").texts) == 20


def test_a_corpus_that_is_too_small_is_an_error_with_both_numbers_and_the_largest_size():
    with pytest.raises(UserError) as caught:
        choose_part(corpus_of(55), 10, 16, 0, "auxiliary.size")
    message = str(caught.value)
    for part in ("auxiliary.size=10", "160 examples", "10 x 16", "made up has 55", "at most 3.437"):
        assert part in message


class Counted:
    """Stands for a corpus too large to build."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count


@pytest.mark.parametrize(("available", "train"), [(55, 16), (617_283, 500), (12_345_678, 516)])
def test_the_largest_size_that_the_message_names_does_fit(available, train):
    corpus = Corpus("made up", Counted(available), "abc")
    with pytest.raises(UserError) as caught:
        choose_part(corpus, 2 * available / train, train, 0, "size")
    largest = float(str(caught.value).split("at most ")[1].split(",")[0])
    assert 0 < round(largest * train) <= available


def test_a_size_that_asks_for_no_text_is_an_error():
    with pytest.raises(UserError, match="asks for no examples"):
        choose_part(corpus_of(10), 0.01, 10, 0, "size")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.txt", lambda long: b"short\n\n" + long + b"\nshort\n"),
        ("c.txt", lambda long: b"short\n\n" + long),
        ("c.txt.gz", lambda long: gzip.compress(b"short\n\n" + long)),
        ("c.jsonl", lambda long: as_jsonl(["a", "b", long.decode()])),
        (
            "c.json",
            lambda long: json.dumps([{"text": t} for t in ("a", "b", long.decode())]).encode(),
        ),
        ("c.md", lambda long: b"one\n\ntwo\n\n" + long.replace(b"xx", b"x\n")),
    ],
    ids=["inside", "unended", "gz", "jsonl", "json", "paragraph"],
)
def test_a_text_beyond_the_bound_is_named(name, content, tmp_path, monkeypatch):
    monkeypatch.setattr("tartan.data.corpus.LONGEST_TEXT", 3 << 20)
    path = tmp_path / name
    path.write_bytes(content(b"x" * ((3 << 20) + 9)))
    with pytest.raises(UserError, match=r"(line|text) 3 is longer than 3 MiB; split it") as caught:
        load(path, tmp_path / "cache")
    assert str(path) in str(caught.value)


def test_a_parquet_text_beyond_the_bound_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("tartan.data.corpus.LONGEST_TEXT", 1 << 20)
    rows = pa.table({"text": ["a", None, "x" * (1 << 20), "x" * ((1 << 20) + 1)]})
    pq.write_table(rows, tmp_path / "c.parquet")
    with pytest.raises(UserError, match=r"c\.parquet, text 4 is longer than 1 MiB"):
        load(tmp_path / "c.parquet", tmp_path / "cache")


def test_a_parquet_file_with_a_damaged_footer_is_an_error_of_one_line(tmp_path):
    """Found by `make fuzz`."""
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "c.parquet")
    content = bytearray((tmp_path / "c.parquet").read_bytes())
    content[-60:-20] = b"\xff" * 40
    (tmp_path / "c.parquet").write_bytes(content)
    with pytest.raises(UserError, match=r"\(Parquet\) cannot be read") as caught:
        load(tmp_path / "c.parquet", tmp_path / "cache")
    assert "\n" not in str(caught.value)


def test_a_text_at_the_bound_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tartan.data.corpus.LONGEST_TEXT", 3 << 20)
    (tmp_path / "c.txt").write_bytes(b"a\n" + b"x" * (3 << 20) + b"\nb\n")
    assert [len(text) for text in texts_of(load(tmp_path / "c.txt", tmp_path / "cache"))] == [
        1,
        3 << 20,
        1,
    ]
