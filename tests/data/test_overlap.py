"""Texts that share words with held-out ones: found, warned of, and left out."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data import decontaminate
from tartan.data.auxiliary import AuxiliaryContext
from tartan.data.decontaminate import count_in
from tartan.data.file_task import FileTask
from tartan.data.overlap import NgramIndex, words_of
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.masked_lm import MaskedLM

HELD = " ".join(f"w{i}" for i in range(20))


def slow(held: list[str], texts: list[str], n: int) -> list[bool]:
    def grams(text):
        words = words_of(text)
        if len(words) < n:
            return {tuple(words)} - {()}
        return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}

    known = set().union(*map(grams, held))
    return [bool(grams(text) & known) for text in texts]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (HELD, True),
        (f"before {HELD} after", True),
        (" ".join(HELD.split()[3:16]), True),  # thirteen words
        (" ".join(HELD.split()[3:15]), False),  # twelve
        (HELD.upper().replace(" ", ",\n"), True),
        (HELD.replace("w10", "other"), False),
        ("A short, one!", True),
        ("a short one and more", False),
        ("...", False),
        (None, False),
    ],
)
def test_thirteen_words_in_a_row_or_a_whole_short_text(text, found):
    held = NgramIndex([HELD, "a short one", "", "!"])
    assert held.contaminates([text, "of its own"]).tolist() == [found, False]
    assert held.contaminates(["of its own", text]).tolist() == [False, found]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's A/B-tested, snake_case 3.5%", "it s a b tested snake_case 3 5"),
        ("हिन्दी में", "हिन्दी में"),
        ("한국어, 좋아요", "한국어 좋아요"),
        ("天气很好。ABC公司", "天 气 很 好 abc 公 司"),
        ("データを", "デ ー タ を"),
        ("ง่าย", "ง่ า ย"),
        ("ລາວ", "ລ າ ວ"),
        ("ខ្មែរ", "ខ្ មែ រ"),
        ("မြန်မာ", "မြ န် မာ"),
        ("Windows™ don´t “quote” I❤️NY 1️⃣", "windows don t quote i ny 1"),
        ("m² 3½ ﬁne ＡＢＣ ｶﾞ", "m2 312 fine abc ガ"),
    ],
)
def test_words_are_those_of_the_script(text, words):
    assert words_of(text) == words.split()


@given(st.text())
def test_words_do_not_depend_on_case_and_unicode_form(text):
    found = words_of(text)
    assert words_of(unicodedata.normalize("NFC", text)) == found
    assert words_of(unicodedata.normalize("NFD", text)) == found
    assert words_of(text.casefold()) == found


few = st.lists(st.sampled_from("ab"), max_size=30).map(" ".join)


@settings(max_examples=150)
@given(
    st.lists(few, min_size=1, max_size=3), st.lists(few, min_size=1, max_size=6), st.integers(1, 13)
)
def test_it_is_what_a_slow_reference_finds(held, texts, n):
    assert NgramIndex(held, n).contaminates(texts).tolist() == slow(held, texts, n)


@pytest.fixture
def around(tmp_path):
    """The surroundings of a task whose dev and test texts are known."""
    texts = {"train": ["a b c", HELD, "d e f"], "dev": [HELD, "v w"], "test": ["x y", "z z"]}
    for split, own in texts.items():
        rows = [json.dumps({"text": text, "label": "AB"[i % 2]}) for i, text in enumerate(own)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(rows))
    paths = {split: str(tmp_path / f"{split}.jsonl") for split in texts}
    task = FileTask("own", "macro_f1", 32, **paths).load()
    return AuxiliaryContext(task, TinyEncoder().load(), 3, "all", 0, tmp_path)


@pytest.fixture
def domain(tmp_path):
    lines = ["fine one", f"a line with {HELD}", "X Y", "fine two", "v w and more"]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    return TextAuxiliary(objective=MaskedLM(), path=str(tmp_path / "corpus.txt"))


def test_auxiliary_text_is_decontaminated_where_that_is_asked_for(around, domain):
    found = domain.examples("dapt", around)
    assert (len(found.rows), found.decontaminated) == (5, None)
    asked = replace(around, decontaminate=True)
    for _ in range(2):  # found, then read from the cache
        clean = domain.examples("dapt", asked)
        assert clean.texts["text"][:] == ["fine one", "fine two", "v w and more"]
        assert (len(clean.rows), clean.decontaminated) == (3, 2)
    assert clean.fingerprint != found.fingerprint
    own = TextAuxiliary(objective=MaskedLM(), text="task").examples("tapt", asked)
    assert own.texts["text"][:] == ["a b c", "d e f"]
    assert own.decontaminated == 1


def told(caplog):
    messages = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return [message for message in messages if "dev and test texts" in message]


def test_the_number_of_held_out_texts_is_said(around, domain, caplog, monkeypatch):
    domain.examples("dapt", around)
    (message,) = told(caplog)
    assert message.startswith("auxiliary dapt: 1 of 4 dev and test texts are in ")
    domain.examples("dapt", replace(around, decontaminate=True))
    TextAuxiliary(objective=MaskedLM(), text="task").examples("tapt", around)
    monkeypatch.setattr(decontaminate, "_MOST", 4)  # a larger corpus is left to the check
    domain.examples("dapt", around)
    assert told(caplog) == []


def test_blank_texts_and_missing_ones_are_not_looked_for():
    texts = datasets.Dataset.from_dict({"text": ["a B", None, " ", "c"]})
    assert count_in(texts, [("A  b",), ("",), ("a b",), ("d",)]) == 2
    assert count_in(texts, [("d", "a B"), ("d", "e")]) == 1
