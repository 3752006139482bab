"""What text an auxiliary task trains on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tartan.data.auxiliary import AuxiliaryContext
from tartan.data.file_task import FileTask
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
    around = AuxiliaryContext(
        end_task=toy.load(),
        encoder=TinyEncoder().load(),
        train_examples=48,
        default_size=default_size,
        seed=seed,
        cache_dir=cache_dir,
    )
    return TextAuxiliary(objective=MaskedLM(), **options).examples(name, around)


@pytest.mark.parametrize("value", [0, -1, "many", "10", "", True, float("nan"), float("inf")])
def test_a_size_is_a_positive_number_or_all(value):
    with pytest.raises(UserError, match=r"^size: "):
        TextAuxiliary(objective=MaskedLM(), size=value)


def test_task_text_is_every_training_text(toy, cache_dir):
    texts = texts_for(toy, cache_dir, default_size=0.01, name="tapt", text="task")
    assert len(texts.rows) == 48
    assert texts.size is None
    assert texts.source == "toy train"


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


def test_domain_text_is_the_file_of_the_task_without_its_blank_lines(toy, cache_dir):
    texts = texts_for(toy, cache_dir)
    assert len(texts.rows) == 3 * 64 - 1
    assert texts.source == toy.domain
    assert texts.size is None


def test_domain_text_is_chosen_by_size(toy, cache_dir):
    texts = texts_for(toy, cache_dir, default_size=2)
    assert texts.size == 2.0
    assert len(texts.rows) in (95, 96)  # one line of the corpus is blank


def test_the_size_of_one_task_overrides_that_for_all(toy, cache_dir):
    texts = texts_for(toy, cache_dir, default_size=100, size=1)
    assert texts.size == 1.0
    assert len(texts.rows) in (47, 48)
    assert texts_for(toy, cache_dir, default_size=1, size="all").size is None


def test_a_size_that_the_corpus_does_not_have_is_blamed_on_the_option_that_set_it(toy, cache_dir):
    with pytest.raises(UserError, match=r"^auxiliary\.size=5 "):
        texts_for(toy, cache_dir, default_size=5)
    with pytest.raises(UserError, match=r"^auxiliary\.mine\.size=5 "):
        texts_for(toy, cache_dir, name="mine", size=5)


def test_another_seed_chooses_another_part(toy, cache_dir):
    first, second = (texts_for(toy, cache_dir, default_size=1, seed=s) for s in (0, 1))
    assert first.fingerprint != second.fingerprint
    assert first.rows["input_ids"][:] != second.rows["input_ids"][:]


def test_a_path_takes_the_place_of_the_file_of_the_task(toy, cache_dir, tmp_path):
    (tmp_path / "mine.txt").write_text("one\n\ntwo\n")
    texts = texts_for(toy, cache_dir, path=str(tmp_path / "mine.txt"))
    assert len(texts.rows) == 2
    assert texts.source == str(tmp_path / "mine.txt")


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
    ("options", "message"),
    [
        ({"text": "other"}, "must be task or domain, got 'other'"),
        ({"path": "a.txt", "hub": "b"}, "not both"),
        ({"text": "task", "path": "a.txt"}, "takes no path or hub"),
        ({"text": "task", "hub": "b"}, "takes no path or hub"),
        ({"text": "task", "size": 3.0}, "^size is for domain text; the task's own is taken whole"),
        ({"text": "task", "at_most": True}, "^at_most is for domain text"),
        ({"text": "task", "column": "body"}, "^column is for domain text"),
        ({"text": "task", "split": "test"}, "^split is for domain text"),
        ({"text": "task", "hub_config": "en"}, "^hub_config is for domain text"),
        ({"path": "a.txt", "hub_config": "en"}, "^hub_config is for a data set on the Hub; give"),
        ({"split": "test"}, "^split is for a data set on the Hub; give hub=NAME too"),
        ({"labelled_only": True}, "labelled_only is for the task's own text"),
    ],
)
def test_options_that_contradict_each_other_are_an_error(options, message):
    with pytest.raises(UserError, match=message):
        TextAuxiliary(objective=MaskedLM(), **options)


def test_the_tasks_own_text_is_never_left_out():
    assert not TextAuxiliary(objective=MaskedLM(), text="task", optional=True).left_out
    assert TextAuxiliary(objective=MaskedLM(), optional=True).left_out


def test_a_corpus_that_holds_the_tasks_own_files_is_told(toy, cache_dir, data_dir, caplog):
    texts_for(toy, cache_dir, path=str(data_dir / "toy"))
    said = [r.getMessage() for r in caplog.records if r.getMessage().startswith("corpus")]
    assert said == [
        f"corpus {data_dir}/toy holds the task's own {toy.train}, {toy.dev}, {toy.test}: masked "
        "language modelling sees the texts that the model is to be tested on; keep them elsewhere"
    ]
