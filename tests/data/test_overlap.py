"""Texts that share words with held-out ones: counted as a slow reference counts them."""

from __future__ import annotations

import json
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tartan.data.auxiliary import AuxiliaryContext
from tartan.data.file_task import FileTask
from tartan.data.overlap import WORDS, HeldOutGrams, word_grams, words_of
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM

HELD = " ".join(f"w{i}" for i in range(20))


def is_plain(character: str) -> bool:
    """Whether neither NFKC nor casefolding takes a character apart."""
    return all(
        unicodedata.normalize("NFKC", form) == form and len(form) == 1
        for form in (character, character.casefold())
    )


def slow(held: list[str], texts: list[str]) -> list[bool]:
    def grams(text):
        words = words_of(text)
        if len(words) < WORDS:
            return {tuple(words)} - {()}
        return {tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}

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
        ("", False),
        ("...", False),
        (None, False),
    ],
)
def test_thirteen_words_in_a_row_or_a_whole_short_text(text, found):
    held = HeldOutGrams.of([HELD, "a short one", "", "!"])
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
    assert not any(word.isspace() for word in found)


@given(
    st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Lm", "No"]).filter(is_plain))
)
def test_latin_words_are_runs_of_word_characters(text):
    assert words_of(text) == re.findall(r"\w+", text.casefold())


def test_texts_without_spaces_share_characters():
    held = HeldOutGrams.of(["今天天气很好我们一起去公园散步吧", "短文"])
    texts = ["他说今天天气很好，我们一起去公园，好吗", "今天天气很好", "短 文", "长文"]
    assert held.contaminates(texts).tolist() == [True, False, True, False]


few = st.lists(st.sampled_from("ab"), max_size=30).map(" ".join)


@settings(max_examples=100)
@given(st.lists(few, min_size=1, max_size=3), st.lists(few, min_size=1, max_size=6))
def test_it_is_what_a_slow_reference_finds(held, texts):
    assert HeldOutGrams.of(held).contaminates(texts).tolist() == slow(held, texts)


def test_grams_do_not_cross_from_one_text_into_the_next():
    grams, owners = word_grams([["a", "b"], [], ["c", "d", "e"], ["f"]], 2)
    assert owners.tolist() == [0, 2, 2]
    assert len(np.unique(grams)) == 3


@pytest.fixture
def around(tmp_path):
    """The surroundings of a task whose dev and test texts are known."""
    texts = {"train": ["a b c", HELD, "d e f"], "dev": [HELD, "v w"], "test": ["x y", "z z"]}
    for split, own in texts.items():
        rows = [json.dumps({"text": text, "label": "AB"[i % 2]}) for i, text in enumerate(own)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(rows))
    paths = {split: str(tmp_path / f"{split}.jsonl") for split in texts}
    task = FileTask("own", "macro_f1", 32, **paths).load()

    def call(decontaminate):
        encoder = TinyEncoder().load()
        return AuxiliaryContext(task, encoder, 3, "all", 0, tmp_path, decontaminate=decontaminate)

    return call


def test_auxiliary_text_is_decontaminated_where_that_is_asked_for(around, tmp_path):
    lines = ["fine one", f"a line with {HELD}", "X Y", "fine two", "v w and more"]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    domain = TextAuxiliary(objective=MaskedLM(), path=str(tmp_path / "corpus.txt"))
    plain = domain.examples("dapt", around(False))
    assert (len(plain.rows), plain.decontaminated) == (5, None)
    for _ in range(2):  # found, then read from the cache
        clean = domain.examples("dapt", around(True))
        assert clean.texts["text"][:] == ["fine one", "fine two", "v w and more"]
        assert (len(clean.rows), clean.decontaminated) == (3, 2)
    assert clean.fingerprint != plain.fingerprint
    own = TextAuxiliary(objective=MaskedLM(), text="task").examples("tapt", around(True))
    assert own.texts["text"][:] == ["a b c", "d e f"]
    assert own.decontaminated == 1


def test_a_corpus_of_held_out_texts_only_is_an_error(around, tmp_path):
    (tmp_path / "corpus.txt").write_text("x y\nv w\n")
    domain = TextAuxiliary(objective=MaskedLM(), path=str(tmp_path / "corpus.txt"))
    with pytest.raises(UserError, match="overlaps with a dev or test text"):
        domain.examples("dapt", around(True))
