"""What text an auxiliary task trains on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tartan.data.file_task import FileTask
from tartan.data.prepared import AuxiliaryContext, AuxiliarySettings, check_task_name
from tartan.data.text_auxiliary import TextAuxiliary, training_texts
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM


@pytest.fixture(scope="module")
def toy(data_dir):
    paths = {split: str(data_dir / "toy" / f"{split}.jsonl") for split in ("train", "dev", "test")}
    domain = str(data_dir / "corpus.txt")
    return FileTask(name="toy", metric="macro_f1", max_length=20, domain=domain, **paths)


def texts_for(toy, cache_dir, default_size="all", name="dapt", seed=0, **options):
    shared = AuxiliarySettings(default_size, seed)
    around = AuxiliaryContext(toy.load(), TinyEncoder().load(), shared, cache_dir)
    return TextAuxiliary(objective=MaskedLM(), **options).examples(name, around)


def test_of_few_labels_the_task_text_is_all_texts_or_those_with_a_label(toy, cache_dir):
    few = replace(toy, labelled=20)
    for only, count in ((False, 48), (True, 20)):
        found = texts_for(few, cache_dir, name="tapt", text="task", labelled_only=only)
        assert len(found.rows) == count
    assert set(found.texts["text"]) == set(few.load().train.texts)


def test_task_text_holds_no_text_of_dev_or_test(toy):
    end_task = toy.load()
    texts = set(training_texts(end_task).texts["text"])
    assert texts == set(end_task.train.texts)
    for split in (end_task.dev, end_task.test):
        unseen = {t for t, new in zip(split.texts, split.unseen, strict=True) if new}
        assert unseen
        assert texts.isdisjoint(unseen)


def test_a_size_that_the_corpus_does_not_have_is_blamed_on_the_option_that_set_it(toy, cache_dir):
    with pytest.raises(UserError, match=r"^auxiliary\.size=5 "):
        texts_for(toy, cache_dir, default_size=5)
    with pytest.raises(UserError, match=r"^auxiliary\.mine\.size=5 "):
        texts_for(toy, cache_dir, name="mine", size=5)


def test_a_corpus_of_blank_lines_is_an_error(toy, cache_dir, tmp_path):
    (tmp_path / "blank.txt").write_text("\n  \n\n")
    with pytest.raises(UserError, match="holds blank lines only"):
        texts_for(toy, cache_dir, path=str(tmp_path / "blank.txt"))


@pytest.mark.parametrize("text", ["task", "domain"])
def test_texts_are_cut_at_the_length_of_the_end_task_or_at_their_own(text, toy, cache_dir):
    longest = [
        max(map(len, texts_for(toy, cache_dir, text=text, max_length=length).rows["input_ids"]))
        for length in (None, 8)
    ]
    assert 8 < longest[0] <= 20
    assert longest[1] == 8


@pytest.mark.parametrize(
    ("options", "idle"),
    [
        ({"path": "a.txt", "hub": "b"}, "path"),
        ({"text": "task", "path": "a.txt"}, "path"),
        ({"text": "task", "size": 3.0}, "size"),
        ({"split": "test"}, "split"),
        ({"labelled_only": True}, "labelled_only"),
    ],
)
def test_an_option_that_nothing_would_read_is_refused(options, idle):
    with pytest.raises(UserError, match=f"^{idle} does not apply"):
        TextAuxiliary(objective=MaskedLM(), **options)


@pytest.mark.parametrize("name", ["size", "end_task", "meta_head", "", "a.b", "training"])
def test_a_name_that_something_else_has_is_refused(name):
    with pytest.raises(UserError, match=f"cannot be named {name!r}"):
        check_task_name(name)
    for other in ("dapt", "news-2024", "Fachtexte_ä", "task-mask-a-b", "meta"):
        check_task_name(other)
