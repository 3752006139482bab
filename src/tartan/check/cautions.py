"""Warns of problems with labels, texts, memory and settings, whatever the method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tartan.check.facts import Facts
from tartan.check.vocabulary import MOST_UNKNOWN
from tartan.data.remarks import UNEVEN, names_of
from tartan.evaluation.named_metrics import LABELS_ALIKE

SMALL_DEV = 200
"""Number of dev examples below which a warning says what depends on them.

The paper's smallest dev sets have 64 and 114 examples, which works; but the accuracy on 200
examples is off by up to 7 points by chance alone (two standard errors).
"""
RARE = 10
"""Number of a label's training examples below which its F1 is mostly chance."""
SEEN = 0.02
"""Share of dev or test whose text, or a near-duplicate of it, is in train that is warned of."""
FULL = 0.9
"""Share of the memory above which the estimate counts as too much.

The estimate counts tensors only, and some memory is always lost between them.
"""
CUT = 0.01
"""Share of cut texts above which a longer input is recommended."""
MORE_PIECES = 1.2
"""Pieces per word, relative to general English, from which the vocabulary counts as unsuitable.

Texts are then a fifth longer for the encoder, and their words are made of pieces that it has seldom
read in this order, which masked language modelling on such text trains. For MiniLM, news are at
1.07, SciERC at 1.14, ACL-ARC at 1.21 and ChemProt at 1.52.
"""
SMALL_BATCH = 128
"""Batch size below which fitting the meta head on examples outside the batch is mentioned.

The last table of docs/algorithm.md has its effect on the task weights.
"""


def cautions(facts: Facts, method: str) -> Iterator[str]:
    """Yield the warnings that apply if `method` is trained, one sentence each."""
    yield from _about_dev(facts, method)
    yield from _about_labels(facts)
    yield from _about_repeats(facts)
    yield from _about_reading(facts)
    yield from _about_settings(facts, method)


def _about_dev(facts: Facts, method: str) -> Iterator[str]:
    if facts.dev < SMALL_DEV:
        weights = " and the task weights" if method == "meta_tartan" else ""
        error = 100 * math.sqrt(1 / max(1, facts.dev))  # two of an accuracy of 50 %
        yield (
            f"dev has {facts.dev} examples, on which the choice of the checkpoint{weights} "
            f"rest{'' if weights else 's'}: by chance alone an accuracy there is off by up to "
            f"{error:.0f} points (two standard errors); compare methods over "
            "several seeds"
        )


def _about_labels(facts: Facts) -> Iterator[str]:
    for split, missing in (("dev", facts.missing_in_dev), ("test", facts.missing_in_test)):
        if missing:
            yield f"{split} has no example of {names_of(missing)}"
    by_count = sorted(facts.labels, key=lambda entry: entry[1])
    if facts.imbalance >= UNEVEN:
        yield (
            f"the most frequent label has {facts.imbalance:.1f} times the examples of the rarest"
            f"{_against_imbalance(facts)}; more examples of {by_count[0][0]!r} help most"
        )
    rare = [(label, count) for label, count in by_count if count < RARE]
    if len(rare) == 1:
        ((label, count),) = rare
        yield (
            f"label {label!r} has {count} training examples: find at least {RARE}, or merge it "
            "with another label"
        )
    elif rare:
        yield (
            f"labels {names_of([label for label, _ in rare])} have fewer than {RARE} training "
            f"examples each, {rare[0][0]!r} only {rare[0][1]}: find more, or merge them with others"
        )
    yield from facts.oddities


def _against_imbalance(facts: Facts) -> str:
    """Return options by which labels count equally in the metric and in the loss."""
    measures = []
    if facts.metric not in LABELS_ALIKE:
        measures.append("task.metric=macro_f1 makes each count alike in choosing the checkpoint")
    if facts.weighs_labels is None:
        measures.append("the loss counts each example alike (it has no class weights)")
    elif not facts.weighs_labels:
        measures.append("classifier.class_weights=balanced makes each count alike in the loss")
    return "".join(f"; {measure}" for measure in measures)


def _about_repeats(facts: Facts) -> Iterator[str]:
    for split, share in facts.seen.items():
        if share >= SEEN:
            rests = ", and so does the choice of the checkpoint" if split == "dev" else ""
            advice = "; task.split=clean keeps such texts together" if facts.text else ""
            yield (
                f"{share:.0%} of {split} have a text that train has too: the score partly rewards "
                f"memorising{rests}{advice}"
            )
    for split, share in facts.near.items():
        if share >= SEEN:
            yield (
                f"{share:.0%} of {split} are nearly equal to a text of train: the score partly "
                "rewards memorising; task.split=clean keeps such texts together"
            )
    if facts.test_in_dev:
        yield (
            f"{facts.test_in_dev:,} test texts are in dev too, by which the checkpoint is chosen; "
            "scores on unseen texts leave out those of train only"
        )
    if facts.contradicted > 0:
        yield (
            f"{facts.contradicted:.1%} of train have a text that has another label elsewhere in "
            "train: look at these labels"
        )
    if facts.held_out_in_corpus:
        yield (
            f"{facts.held_out_in_corpus:,} dev and test texts are in the domain corpus: take them "
            "out, or masked language modelling trains on them"
        )


def _about_reading(facts: Facts) -> Iterator[str]:
    limit = facts.longest_read
    for option, sources in _by_option(facts.cut).items():
        share = max(facts.cut[source][0] for source in sources)
        enough = max(facts.cut[source][1] for source in sources)
        upto = "up to " if len(sources) > 1 else ""
        advice = f"{option}={enough} would cut less than 1 %"
        if limit is not None and enough > limit:
            advice = f"the encoder reads at most {limit} tokens"
        yield f"{upto}{share:.0%} of the texts of {', '.join(sources)} are cut; {advice}"
    unread = {source: share for source, share in facts.unknown.items() if share >= MOST_UNKNOWN}
    if unread:
        upto = "up to " if len(unread) > 1 else ""
        yield (
            f"the encoder cannot read {upto}{max(unread.values()):.0%} of the words of "
            f"{', '.join(unread)}, which its vocabulary lacks in part: use an encoder of their "
            "language, or of many (encoder=huggingface encoder.name=FacebookAI/xlm-roberta-base)"
        )
    if facts.more_pieces is not None and facts.more_pieces >= MORE_PIECES:
        more = f"{facts.more_pieces - 1:.0%}"
        if facts.domain:
            rest = "masked language modelling on the domain's text is worth most here"
        else:
            rest = "find unlabelled text of the domain (auxiliary.dapt.path), or an encoder of it"
        yield (
            f"the encoder breaks the task's words into {more} more pieces than general English: "
            f"{rest}; for another language, use an encoder of it, or of many "
            "(encoder=huggingface encoder.name=FacebookAI/xlm-roberta-base)"
        )


def _by_option(cut: Mapping[str, tuple[float, int]]) -> dict[str, list[str]]:
    """Return the sources that are cut too often, by the option that sets their length."""
    options: dict[str, list[str]] = {}
    for source, (share, _) in cut.items():
        if share >= CUT:
            name = "task" if source in ("train", "dev", "test") else f"auxiliary.{source}"
            options.setdefault(f"{name}.max_length", []).append(source)
    return options


def _about_settings(facts: Facts, method: str) -> Iterator[str]:
    if facts.memory is not None and facts.memory > FULL:
        yield (
            f"training takes about {facts.memory:.0%} of the memory there is: lower "
            "micro_batch_size, then task.max_length"
        )
    if method != facts.method or not facts.text:
        return
    small = facts.batch_size is not None and facts.batch_size < SMALL_BATCH
    if small and facts.head_from_batch:
        yield (
            f"with batches of {facts.batch_size}, try fitting the meta head on other examples: "
            "method.stages.joint.meta_head.examples_from=rest"
        )
    if method in ("mt_tartan", "meta_tartan") and not facts.brings_head and not facts.warms_heads:
        yield (
            "the encoder brings no masked-LM head: try "
            "method.stages.head_warmup.enabled=true, which trains one first"
        )
