"""The decision table: which method to begin with. docs/choosing.md shows the same table.

The rules rest on the paper's findings (src/report/tables/paper_tables.yaml) and on what was
measured here (docs/results.md). They choose where to begin; only runs with several seeds can tell
which method is best on some data (`python -m src.compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from src.check.facts import Facts

MANY_LABELS = 5_000
"""Training examples from which on plain fine-tuning comes first. The paper's text tasks have 515 to
4,169, and Gururangan et al. (2020) call tasks of 5,000 and more high-resource: what the auxiliary
text adds is smaller there, and a step costs two to four times as much."""
ONE_BATCH = 32
"""Dev examples below which weights are not learned: fewer than one validation batch of the
published size, so that every meta-gradient would be that of the same few examples."""


@dataclass(frozen=True)
class Decision:
    """A row of the table.

    Attributes:
        case: when it applies, in words.
        applies: whether it does.
        method: to begin with, its name in `conf/method`.
        because: why, in words.
        details: further reasons, with the task's own numbers.
    """

    case: str
    applies: Callable[[Facts], bool]
    method: str
    because: str
    details: Callable[[Facts], Sequence[str]] = lambda facts: ()


def decide(facts: Facts) -> Decision:
    """Return the first row that applies."""
    return next(row for row in DECISIONS if row.applies(facts))


def as_markdown() -> str:
    """Return the table as docs/choosing.md shows it."""
    lines = ["| first case that applies | begin with | because |", "| --- | --- | --- |"]
    lines += [f"| {row.case} | `method={row.method}` | {row.because} |" for row in DECISIONS]
    return "\n".join(lines)


def _many(facts: Facts) -> list[str]:
    return [
        f"{facts.train:,} training examples",
        "compare it with method=meta_tartan over a few seeds before paying for more",
    ]


def _weights_cannot_be_learned(facts: Facts) -> bool:
    return facts.dev < ONE_BATCH or bool(facts.missing_in_dev)


def _equal_weights(facts: Facts) -> list[str]:
    missing = ", ".join(facts.missing_in_dev)
    lacks = f"has no example of {missing}" if missing else f"has only {facts.dev} examples"
    return [*_together(facts), f"dev {lacks}"]


def _together(facts: Facts) -> Iterator[str]:
    yield f"{facts.train:,} training examples: few labels, the paper's case"
    if not facts.text:
        yield (
            f"{facts.domain:,} images of other classes: in the paper, training on both together "
            "beat pre-training on CIFAR-100, 52.3 % against 46.7 %"
        )
    elif facts.domain:
        yield (
            f"{facts.domain:,} texts of the domain: training on them and on the task's own text "
            "together with the end task beat DAPT+TAPT on all three tasks of the paper, by 2 to 5 "
            "points (not confirmed with small encoders: docs/results.md)"
        )
    else:
        yield (
            "no domain text: the task's own text is the auxiliary one; in the paper that beat TAPT "
            "by 2 to 3.5 points (not confirmed with small encoders: docs/results.md)"
        )


DECISIONS = (
    Decision(
        case="an encoder of text without a mask token",
        applies=lambda facts: facts.text and not facts.masks,
        method="finetune",
        because="the encoder has no mask token: it cannot learn from unlabelled text",
    ),
    Decision(
        case="images, and none of other classes",
        applies=lambda facts: not facts.text and not facts.domain,
        method="finetune",
        because="there are no other images to train on besides",
    ),
    Decision(
        case=f"{MANY_LABELS:,} labels or more",
        applies=lambda facts: facts.train >= MANY_LABELS,
        method="finetune",
        because=f"from {MANY_LABELS:,} labels on, other data add less, and fine-tuning may do",
        details=_many,
    ),
    Decision(
        case=f"fewer than {ONE_BATCH} dev examples, or labels without one",
        applies=_weights_cannot_be_learned,
        method="mt_tartan",
        because=(
            "too little to learn weights against, so they stay equal; the paper's MT-TARTAN comes "
            "within about two points of META-TARTAN"
        ),
        details=_equal_weights,
    ),
    Decision(
        case="else",
        applies=lambda facts: True,
        method="meta_tartan",
        because="the weights of the tasks are learned against dev: nothing to search for",
        details=lambda facts: tuple(_together(facts)),
    ),
)
"""In order; the last applies always."""
