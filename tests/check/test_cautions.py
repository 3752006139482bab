"""Each caution, on the facts that call for it and on those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tartan.check.cautions import (
    CUT,
    FULL,
    MORE_PIECES,
    RARE,
    SEEN,
    SMALL_BATCH,
    SMALL_DEV,
    cautions,
)
from tartan.check.vocabulary import MOST_UNKNOWN
from tartan.data.remarks import UNEVEN
from tests.check.fine import FINE


def warnings(recommended="meta_tartan", **changes):
    return list(cautions(replace(FINE, **changes), recommended))


def test_a_small_dev_set_is_warned_of_with_its_error():
    assert warnings(dev=SMALL_DEV) == []
    (warning,) = warnings(dev=100)
    assert "dev has 100 examples" in warning
    assert "the choice of the checkpoint and the task weights rest" in warning
    assert "10 points" in warning  # 2 sqrt(0.25 / 100)
    few = warnings("finetune", dev=100, method="finetune")
    assert "task weights" not in few[0]


def test_imbalance_calls_for_macro_f1_and_class_weights():
    assert warnings(imbalance=UNEVEN - 0.1) == []
    (warning,) = warnings(imbalance=14.4)
    assert "14.4 times" in warning
    assert "more examples of 'rare' help" in warning
    assert "task.metric" not in warning
    assert "class_weights" not in warning
    (warning,) = warnings(imbalance=14.4, metric="micro_f1", weighs_labels=False)
    assert "task.metric=macro_f1" in warning
    assert "classifier.class_weights=balanced" in warning
    (warning,) = warnings(imbalance=14.4, weighs_labels=None)
    assert "it has no class weights" in warning


def test_macro_f1_is_not_advised_in_place_of_a_metric_in_which_labels_count_alike():
    for metric in ("balanced_accuracy", "macro_recall", "auroc"):
        assert "task.metric" not in warnings(imbalance=14.4, metric=metric)[0]
    for metric in ("accuracy", "mcc", "weighted_f1", "own"):
        assert "task.metric=macro_f1" in warnings(imbalance=14.4, metric=metric)[0]


def test_a_label_with_a_handful_of_examples_is_named():
    assert warnings(labels=((" rare", RARE), ("often", 100))) == []
    (warning,) = warnings(labels=((" rare", RARE - 1), ("often", 100)))
    assert f"label ' rare' has {RARE - 1} training examples" in warning


def test_several_such_labels_are_named_together_the_rarest_first():
    (warning,) = warnings(labels=(("a", 9), ("often", 100), ("b ", 7), ("c", 9)))
    assert f"labels 'b ', 'a', 'c' have fewer than {RARE} training examples" in warning
    assert "'b ' only 7" in warning
    (many,) = warnings(labels=tuple((f"l{i}", 1) for i in range(30)))
    assert "'l7' and 22 more have" in many


def test_labels_that_dev_or_test_lack_are_named():
    dev, test = warnings(missing_in_dev=("a", "b"), missing_in_test=("c",))
    assert dev == "dev has no example of 'a', 'b'"
    assert test == "test has no example of 'c'"


def test_oddities_of_texts_and_labels_are_told_as_they_are():
    assert warnings(oddities=("task own: something odd",)) == ["task own: something odd"]


def test_leaks_are_warned_of():
    assert warnings(seen={"dev": SEEN / 2, "test": SEEN / 2}) == []
    dev, test = warnings(seen={"dev": 0.377, "test": 0.374})
    assert "38% of dev" in dev
    assert "checkpoint" in dev
    assert "37% of test" in test
    assert "checkpoint" not in test


def test_near_duplicates_in_train_are_warned_of():
    assert warnings(near={"dev": SEEN / 2, "test": SEEN / 2}) == []
    (warning,) = warnings(near={"dev": 0.0, "test": 0.25})
    assert "25% of test are nearly equal to a text of train" in warning
    assert "task.split=clean" in warning


def test_test_texts_that_dev_has_too_are_warned_of():
    (warning,) = warnings(test_in_dev=7)
    assert "7 test texts are in dev too" in warning
    assert "unseen" in warning


def test_contradictory_labels_are_warned_of():
    (warning,) = warnings(contradicted=0.03)
    assert "3.0% of train" in warning


def test_held_out_texts_in_the_corpus_are_warned_of():
    (warning,) = warnings(held_out_in_corpus=3)
    assert "3 dev and test texts are in the domain corpus" in warning


def test_cut_texts_call_for_a_longer_input_once_an_option():
    cut = {"train": (CUT / 2, 64), "dev": (0.02, 72), "test": (0.03, 80), "dapt": (0.5, 96)}
    own, corpus = warnings(cut=cut)
    assert "up to 3% of the texts of dev, test are cut; task.max_length=80" in own
    assert "50% of the texts of dapt are cut; auxiliary.dapt.max_length=96" in corpus
    (limited,) = warnings(cut={"train": (0.5, 600)})
    assert "the encoder reads at most 512 tokens" in limited
    (unlimited,) = warnings(cut={"train": (0.5, 600)}, longest_read=None)
    assert "task.max_length=600" in unlimited


def test_a_vocabulary_that_does_not_fit_is_warned_of():
    assert warnings(more_pieces=None) == []
    assert warnings(more_pieces=MORE_PIECES - 0.01) == []
    (warning,) = warnings(more_pieces=1.52)
    assert "52% more pieces" in warning
    assert "masked language modelling" in warning
    (warning,) = warnings(more_pieces=1.52, domain=0, configured=frozenset({"task"}))
    assert "find unlabelled text" in warning


def test_words_that_the_encoder_cannot_read_are_warned_of():
    assert warnings(unknown={"train": MOST_UNKNOWN / 2}) == []
    (warning,) = warnings(unknown={"train": 1.0, "dapt": 0.0}, more_pieces=None)
    assert "cannot read 100% of the words of train, which" in warning
    assert "encoder=huggingface encoder.name=FacebookAI/xlm-roberta-base" in warning
    (warning,) = warnings(unknown={"train": 0.43, "dapt": 0.5})
    assert "up to 50% of the words of train, dapt" in warning


def test_small_batches_call_for_a_meta_head_on_other_examples():
    (warning,) = warnings(batch_size=SMALL_BATCH - 1)
    assert "meta_head.examples_from=rest" in warning
    assert warnings(batch_size=SMALL_BATCH - 1, head_from_batch=False) == []


def test_an_encoder_without_a_masked_lm_head_calls_for_a_warm_up():
    (warning,) = warnings(brings_head=False)
    assert "head_warmup.enabled=true" in warning
    assert warnings(brings_head=False, warms_heads=True) == []


def test_too_little_memory_calls_for_smaller_micro_batches():
    assert warnings(memory=FULL) == warnings(memory=None) == []
    (warning,) = warnings(memory=1.7)
    assert "170% of the memory" in warning
    assert "micro_batch_size" in warning


@pytest.mark.parametrize("text", [True, False], ids=["texts", "images"])
def test_a_clean_split_is_named_where_there_is_one(text):
    (found,) = [one for one in warnings(text=text, seen={"test": 0.25}) if "memorising" in one]
    assert found.startswith("25% of test have a text that train has too")
    assert ("task.split=clean keeps such texts together" in found) == text
