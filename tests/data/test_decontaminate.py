"""Dev and test texts among the text of auxiliary tasks are counted and told before training."""

from __future__ import annotations

from dataclasses import replace

import datasets
import pytest

from tartan.data import TartanData, decontaminate
from tartan.data.auxiliary import AuxiliaryContext
from tartan.data.decontaminate import count_in
from tartan.data.file_task import FileTask
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.masked_lm import MaskedLM
from tests.data.test_text_task import write


@pytest.fixture
def task(tmp_path):
    parts = {
        split: write(
            tmp_path / f"{split}.jsonl", [(f"Words of {split} {i}", "ab"[i % 2]) for i in range(8)]
        )
        for split in ("train", "dev", "test")
    }
    lines = [
        "words of  TRAIN 1",
        "words of\tDEV 1",
        "words of dev 1",
        "Words of test 2",
        "others",
        "",
    ]
    (tmp_path / "domain.txt").write_text("\n".join(lines) + "\n")
    paths = {split: str(path) for split, path in parts.items()}
    return FileTask("toy", "macro_f1", 20, domain=str(tmp_path / "domain.txt"), **paths)


@pytest.fixture
def said(task, cache_dir, caplog):
    """Reads an auxiliary task, and returns what is said of held-out texts."""

    def read(context=(), **options):
        caplog.clear()
        around = AuxiliaryContext(
            end_task=task.load(),
            encoder=TinyEncoder().load(),
            train_examples=8,
            default_size="all",
            seed=0,
            cache_dir=cache_dir,
        )
        auxiliary = TextAuxiliary(objective=MaskedLM(), **options)
        auxiliary.examples("dapt", replace(around, **dict(context)))
        return told(caplog)

    return read


def told(caplog):
    messages = [record.getMessage() for record in caplog.records]
    return [message for message in messages if "dev and test texts" in message]


def test_their_number_is_said_once_with_what_to_do(said, task):
    assert said() == [
        f"auxiliary dapt: 2 of 16 dev and test texts are in {task.domain}, so that the model is "
        "trained on texts that it is tested on; auxiliary.decontaminate=true leaves them out"
    ]


def test_nothing_is_said_of_text_without_them(said, tmp_path):
    assert said(text="task") == []
    assert said({"decontaminate": True}) == []
    assert said(select="nearest", size=0.25) == []
    (tmp_path / "clean.txt").write_text("words of TRAIN 1\nothers\n")
    assert said(path=str(tmp_path / "clean.txt")) == []


def test_a_large_corpus_is_left_to_the_check(said, monkeypatch):
    monkeypatch.setattr(decontaminate, "MOST_TEXTS", 5)
    assert said() == []


def test_a_program_is_told_to_remove_them(cache_dir, caplog):
    rows = [{"text": f"Text {i}", "label": "ab"[i % 2]} for i in range(20)]
    texts = {"dapt": [f"text  {i}" for i in range(20)]}
    _ = TartanData(rows, auxiliaries=texts, encoder="tiny", cache_dir=cache_dir).prepared
    (message,) = told(caplog)
    assert message.startswith("auxiliary dapt: 8 of 8 dev and test texts are in dapt, ")
    assert message.endswith("; remove them from it")


def test_either_text_of_a_pair_is_looked_for(cache_dir, caplog):
    rows = [{"text": f"first {i}", "text_pair": f"second {i}", "label": "ab"[i % 2]}
            for i in range(20)]  # fmt: skip
    texts = {"dapt": [f"Second {i}" for i in range(20)]}
    data = TartanData(
        rows, auxiliaries=texts, encoder="tiny", text_pair="text_pair", cache_dir=cache_dir
    )
    _ = data.prepared
    (message,) = told(caplog)
    assert message.startswith("auxiliary dapt: 8 of 8 dev and test texts are in dapt, ")


def test_rows_without_a_label_that_are_in_test_are_warned_of(cache_dir, caplog):
    rows = [{"text": f"Text {i}", "label": "ab"[i % 2]} for i in range(12)]
    own = [{"text": f"Text {i}", "label": None} for i in range(20, 24)]
    test = [{"text": f"Text {i}", "label": "ab"[i % 2]} for i in range(20, 26)]
    _ = TartanData(
        rows + own, rows[:4], test, auxiliaries={"tapt": "task"}, encoder="tiny",
        empty_label="unlabelled", cache_dir=cache_dir,
    ).prepared  # fmt: skip
    assert any("texts that train has too: 4 of 4 in dev, 4 of 6 in test" in r.getMessage()
               for r in caplog.records)  # fmt: skip


def test_blank_texts_and_missing_ones_are_none():
    texts = datasets.Dataset.from_dict({"text": ["a B", None, " ", "c"]})
    assert count_in(texts, [("A  b",), ("",), ("a b",), ("d",)]) == 2
    assert count_in(texts, [("d", "a B"), ("d", "e")]) == 1
