"""The method to begin with, and cautions: rules of thumb, with their reasons.

They rest on the paper's findings (its tables are in `src/report/tables/paper_tables.yaml`) and on
what was measured here (`docs/algorithm.md`). They choose where to begin; only runs with several
seeds can tell which method is best on some data (`python -m src.report`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MANY_LABELS = 5_000
"""Training examples from which on plain fine-tuning comes first. The paper's text tasks have 515 to
4,169, and Gururangan et al. (2020) call tasks of 5,000 and more high-resource: what the auxiliary
text adds is smaller there, and a step costs two to four times as much."""
ONE_BATCH = 32
"""Dev examples below which weights are not learned: fewer than one validation batch of the
published size, so that every meta-gradient would be that of the same few examples."""
SMALL_DEV = 200
"""Dev examples below which a warning says what rests on them. The paper's smallest have 64 and 114:
it works, but by chance alone an accuracy on 200 examples is off by up to 7 points (two standard
errors)."""
RARE = 10
"""Training examples of a label below which its F1 is more luck than learning."""
UNEVEN = 3.0
"""Examples of the most frequent label for one of the rarest from which on labels are imbalanced:
ACL-ARC's ratio is 14, and the paper reports macro-F1 for it."""
SEEN = 0.02
"""Share of dev or test whose text is in train from which on it is warned of."""
FULL = 0.9
"""Share of the memory that the estimate may take: it is of tensors, and some memory is always lost
between them."""
CUT = 0.01
"""Share of the texts that may be cut before a longer input is advised."""
MORE_PIECES = 1.2
"""Pieces a word, against general English, from which on the vocabulary does not fit: texts are a
fifth longer to the encoder, and their words are put together from fragments that it has seldom read
in this order, which is what masked language modelling on such text trains. For MiniLM, news are at
1.07, SciERC at 1.14, ACL-ARC at 1.21 and ChemProt at 1.52."""
SMALL_BATCH = 128
"""Batch size below which the meta head may rather be fitted on other examples than the batch's own:
docs/algorithm.md, the last table, has what it does to the task weights."""
_EXPERIMENTS = {"finetune": "custom_finetune", "mt_tartan": "custom_mt", "meta_tartan": "custom"}
"""By method, those whose options of stages fit one method alone."""


@dataclass(frozen=True)
class Facts:
    """The facts that the rules look at.

    Attributes:
        text: whether the end task is one of text.
        masks: whether the encoder can be trained by masked language modelling.
        brings_head: whether it brings a trained masked-LM head.
        train: training examples.
        dev: validation examples.
        rarest: the rarest label in train, and its training examples.
        missing_in_dev: labels of train that dev has no example of.
        imbalance: examples of the most frequent label for one of the rarest.
        metric: by which the checkpoint is chosen.
        weighs_labels: whether the loss makes labels count alike; None where it cannot.
        domain: auxiliary text that is not the end task's own: how many texts (images of other
            classes, where the task is one of images).
        seen: share of dev and test examples whose content is in train.
        contradicted: share of the training examples whose text has several labels.
        held_out_in_corpus: dev and test examples whose text is in a domain corpus.
        cut: share of the texts that are cut, by source, and a `max_length` that would do.
        longest_read: the longest input that the encoder reads; None for no limit.
        more_pieces: pieces a word of the task's text, in multiples of general English; None where
            words cannot be told apart.
        memory: share of the machine's memory that the configured method takes; None unknown.
        method: the configured method.
        batch_size: of the configured method's stage with a meta-gradient; None without one.
        head_from_batch: whether that stage fits the meta head on its own batch.
        warms_heads: whether the configured method trains the masked-LM heads first.
        configured: kinds (`domain`, `task`) of the config's auxiliary tasks that can be read.
        unusable: whether the config names auxiliary tasks that cannot.
        experiment: that the command names; empty for none.
    """

    text: bool
    masks: bool
    brings_head: bool
    train: int
    dev: int
    rarest: tuple[str, int]
    missing_in_dev: tuple[str, ...]
    imbalance: float
    metric: str
    weighs_labels: bool | None
    domain: int
    seen: dict[str, float]
    contradicted: float
    held_out_in_corpus: int
    cut: dict[str, tuple[float, int]]
    longest_read: int | None
    more_pieces: float | None
    memory: float | None
    method: str
    batch_size: int | None
    head_from_batch: bool
    warms_heads: bool
    configured: frozenset[str]
    unusable: bool
    experiment: str = ""


@dataclass(frozen=True)
class Recommendation:
    """A recommended method, with reasons and cautions.

    Attributes:
        method: its name in `conf/method`.
        options: what selects it on the command line.
        reasons: why, most important first.
        warnings: what to look out for, whatever the method.
    """

    method: str
    options: tuple[str, ...]
    reasons: list[str]
    warnings: list[str]


def recommend(facts: Facts) -> Recommendation:
    """Apply the rules, the first that fits."""
    method, reasons = _method(facts)
    if facts.experiment in _EXPERIMENTS.values():
        options = [f"+experiment={_EXPERIMENTS[method]}"]
    else:
        options = [f"method={method}"]
        if method != "finetune":
            options += _auxiliary_option(facts)
    return Recommendation(method, tuple(options), reasons, list(_warnings(facts, method)))


def _method(facts: Facts) -> tuple[str, list[str]]:
    """`(method, reasons)`."""
    if facts.text and not facts.masks:
        reason = "the encoder has no mask token: it cannot learn from unlabelled text"
        return "finetune", [reason]
    if not facts.text and not facts.domain:
        return "finetune", ["there are no other images to train on besides"]
    if facts.train >= MANY_LABELS:
        return "finetune", [
            f"{facts.train:,} training examples: from {MANY_LABELS:,} on, other data add less, "
            "and fine-tuning may do",
            "compare it with method=meta_tartan over a few seeds before paying for more",
        ]
    reasons = _why_together(facts)
    if facts.dev < ONE_BATCH or facts.missing_in_dev:
        missing = ", ".join(facts.missing_in_dev)
        lacks = f"has no example of {missing}" if missing else f"has only {facts.dev} examples"
        reasons.append(
            f"dev {lacks}: too little to learn weights against, so they stay equal; the paper's "
            "MT-TARTAN comes within about two points of META-TARTAN"
        )
        return "mt_tartan", reasons
    reasons.append("the weights of the tasks are learned against dev: nothing to search for")
    return "meta_tartan", reasons


def _why_together(facts: Facts) -> list[str]:
    few = f"{facts.train:,} training examples: few labels, the paper's case"
    if not facts.text:
        return [
            few,
            f"{facts.domain:,} images of other classes: in the paper, training on both together "
            "beat pre-training on CIFAR-100, 52.3 % against 46.7 %",
        ]
    if facts.domain:
        return [
            few,
            f"{facts.domain:,} texts of the domain: training on them and on the task's own text "
            "together with the end task beat DAPT+TAPT on all three tasks of the paper, by 2 to 5 "
            "points (not confirmed with small encoders: docs/results.md)",
        ]
    return [
        few,
        "no domain text: the task's own text is the auxiliary one; in the paper that beat TAPT "
        "by 2 to 3.5 points (not confirmed with small encoders: docs/results.md)",
    ]


def _auxiliary_option(facts: Facts) -> list[str]:
    """Return options for the recommended auxiliary tasks, if the command has not got them."""
    if not facts.text:
        return [] if "domain" in facts.configured else ["auxiliary=other_classes"]
    if facts.domain:
        missing = "+auxiliary_task@auxiliary.tapt=mlm_task"
        return [] if "task" in facts.configured else [missing]
    return [] if facts.configured == {"task"} and not facts.unusable else ["auxiliary=tapt"]


def _warnings(facts: Facts, method: str) -> Iterator[str]:
    if facts.method != method:
        yield f"the command trains method={facts.method}, not what is recommended"
    yield from _about_dev(facts, method)
    yield from _about_labels(facts)
    yield from _about_repeats(facts)
    yield from _about_reading(facts)
    yield from _about_settings(facts, method)


def _about_dev(facts: Facts, method: str) -> Iterator[str]:
    if facts.dev < SMALL_DEV:
        weights = " and the task weights" if method == "meta_tartan" else ""
        yield (
            f"dev has {facts.dev} examples, on which the choice of the checkpoint{weights} rest: "
            f"two standard errors of an accuracy there are up to {_two_errors(facts.dev):.0f} "
            "points; compare methods over several seeds"
        )
    if facts.missing_in_dev:
        yield f"dev has no example of {', '.join(facts.missing_in_dev)}"


def _two_errors(examples: int) -> float:
    """Two standard errors of an accuracy of 50 %, in points."""
    return 100 * math.sqrt(1 / max(1, examples))


def _about_labels(facts: Facts) -> Iterator[str]:
    label, count = facts.rarest
    if facts.imbalance >= UNEVEN:
        yield (
            f"the most frequent label has {facts.imbalance:.1f} times the examples of the rarest"
            f"{_against_imbalance(facts)}; more examples of {label} help most"
        )
    if count < RARE:
        yield f"label {label} has {count} training examples: find at least {RARE}, or merge it"


def _against_imbalance(facts: Facts) -> str:
    """Return options by which labels count alike in the choice of the checkpoint and the loss."""
    measures = []
    if facts.metric != "macro_f1":
        measures.append("task.metric=macro_f1 makes each count alike in choosing the checkpoint")
    if facts.weighs_labels is None:
        measures.append("the loss counts each example alike (it has no class weights)")
    elif not facts.weighs_labels:
        measures.append("classifier.class_weights=balanced makes each count alike in the loss")
    return "".join(f"; {measure}" for measure in measures)


def _about_repeats(facts: Facts) -> Iterator[str]:
    for split, share in facts.seen.items():
        if share >= SEEN:
            rests = "; the choice of the checkpoint rests on them too" if split == "dev" else ""
            yield (
                f"{share:.0%} of {split} have a text that train has too: memory is measured{rests}"
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
    if facts.more_pieces is not None and facts.more_pieces >= MORE_PIECES:
        more = f"{facts.more_pieces - 1:.0%}"
        if facts.domain:
            rest = "masked language modelling on the domain's text is worth most here"
        else:
            rest = "find unlabelled text of the domain (auxiliary.dapt.path), or an encoder of it"
        yield (
            f"the encoder breaks the task's words into {more} more pieces than general English: "
            f"{rest}"
        )


def _by_option(cut: Mapping[str, tuple[float, int]]) -> dict[str, list[str]]:
    """The sources that are cut too often, by the option that says where."""
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
