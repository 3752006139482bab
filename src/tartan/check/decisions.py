"""Decides which method to begin with, by the table that docs/choosing.md shows.

The rules rest on the paper's findings (report/tables/paper_tables.yaml) and on measurements
with this program (docs/results.md); a test compares the numbers in the reasons with these. Which
method is best on some data, only runs with several seeds can tell (`python -m src.compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tartan.check.facts import Facts
from tartan.data.remarks import names_of

MANY_LABELS = 5_000
"""Number of training examples from which plain fine-tuning is recommended first.

The paper's text tasks have 515 to 4,169, and Gururangan et al. (2020) call tasks of 5,000 and more
high-resource: there the auxiliary text adds less, and a step costs two to four times as much.
"""
ENOUGH_LABELS = 3_000
"""Number of training examples from which fine-tuning is recommended first for a small encoder.

It is about what SciERC has, 3,219; between its 300 and all of its labels nothing has been measured.
"""
SMALL_ENCODER = 50_000_000
"""Number of parameters of an encoder of text below which pre-training first is recommended.

all-MiniLM-L6-v2 has 23 million; no larger encoder has been measured with this program, and the
paper's, RoBERTa-base, has 125 million.
"""
ONE_BATCH = 32
"""Number of dev examples below which task weights are not learned.

A validation batch of the published size would hold all of them, and every meta-gradient would come
from the same few examples.
"""


@dataclass(frozen=True)
class Decision:
    """A row of the decision table.

    Attributes:
        case: when the row applies, in words.
        applies: returns whether the row applies.
        method: the recommended method, by its name in `conf/method`.
        because: the reason, in words.
        details: returns further reasons, with the task's own numbers.
    """

    case: str
    applies: Callable[[Facts], bool]
    method: str
    because: str
    details: Callable[[Facts], Iterable[str]] = lambda facts: ()


def _is_small(facts: Facts) -> bool:
    return facts.text and facts.parameters < SMALL_ENCODER


def _size(facts: Facts) -> str:
    millions = f"{facts.parameters / 1e6:,.0f} million"
    return f"the encoder has {millions} parameters, the paper's 125 million"


def _fixed_weights(facts: Facts) -> Iterator[str]:
    missing = names_of(facts.missing_in_dev)
    lacks = f"has no example of {missing}" if missing else f"has only {facts.dev} examples"
    yield from _together(facts)
    yield f"dev {lacks}"


def _together(facts: Facts) -> Iterator[str]:
    yield f"{facts.train:,} training examples: few labels, the paper's case"
    if not facts.text:
        yield (
            f"{facts.domain:,} images of other classes: in the paper, training on both together "
            "beat pre-training on CIFAR-100, 52.3 % against 46.7 %"
        )
    elif facts.domain:
        yield (
            f"{facts.domain:,} texts of the domain: training on ten of them for each example and "
            "on the task's own text together with the end task beat the best of pre-training on "
            "either or both on all three tasks of the paper, by 1 to 3 points (on ACL-ARC within "
            "chance)"
        )
    else:
        yield (
            "no domain text: the task's own text is the auxiliary one; in the paper that beat TAPT "
            "by 1 to 3 points"
        )


_SMALL = f"an encoder of text of fewer than {SMALL_ENCODER // 10**6} million parameters"
_TAPT_GAINED = (
    "was 11.7 points of macro-F1 ahead of fine-tuning on test, at about the cost of 360 steps of "
    "fine-tuning (95 % interval 6.4 to 17.0, 3 seeds). With a third of that budget it was 9.0 "
    "points behind; with three times the budget the difference is not decided. On ACL-ARC it was "
    "3.2 ahead"
)
"""Measured gain of pre-training on all texts of a task, of which 300 have labels."""

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
        case=f"{MANY_LABELS:,} training examples or more",
        applies=lambda facts: facts.train >= MANY_LABELS,
        method="finetune",
        because=(
            "the paper's tasks have at most 4,169 labels; with more, compare fine-tuning with "
            "method=meta_tartan over a few seeds before paying for more passes"
        ),
        details=lambda facts: (f"{facts.train:,} training examples",),
    ),
    Decision(
        case=f"{_SMALL}, and {ENOUGH_LABELS:,} training examples or more",
        applies=lambda facts: _is_small(facts) and facts.train >= ENOUGH_LABELS,
        method="finetune",
        because=(
            "with all-MiniLM-L6-v2 and about the cost of 1,800 steps of fine-tuning, pre-training "
            "first and MT-TARTAN with equal weights were within chance of fine-tuning on SciERC "
            "(3,219 labels); on ChemProt (4,169) MT-TARTAN was 0.8 points of micro-F1 ahead on "
            "test (0.3 to 1.4, 5 seeds), on dev within chance, and pre-training first 1.3 behind. "
            "Fine-tuning is the simplest (docs/results.md)"
        ),
        details=lambda facts: (_size(facts), f"{facts.train:,} training examples"),
    ),
    Decision(
        case=f"{_SMALL}, and unlabelled text",
        applies=lambda facts: _is_small(facts) and facts.domain > 0,
        method="dapt_tapt",
        because=(
            "with all-MiniLM-L6-v2 and 300 labels of SciERC, pre-training on all of its texts "
            f"first (method=tapt) {_TAPT_GAINED}, and on docstrings method=dapt_tapt was 2.9 "
            "behind, both within chance. On much unlabelled text method=dapt_tapt has not been "
            "measured (docs/results.md)"
        ),
        details=lambda facts: (_size(facts),),
    ),
    Decision(
        case=f"{_SMALL}, and rows without a label",
        applies=lambda facts: _is_small(facts) and facts.unlabelled > 0,
        method="tapt",
        because=(
            "with all-MiniLM-L6-v2 and 300 labels of SciERC, whose other texts were there without "
            f"a label, this {_TAPT_GAINED}, within chance (docs/results.md)"
        ),
        details=lambda facts: (_size(facts), f"{facts.unlabelled:,} texts without a label"),
    ),
    Decision(
        case=_SMALL,
        applies=_is_small,
        method="finetune",
        because=(
            "with all-MiniLM-L6-v2 and 300 labels or fewer, pre-training on the labelled texts "
            "first was 5.8 points of macro-F1 ahead of fine-tuning on test of SciERC and 4.0 "
            "behind on docstrings, both within chance, and fine-tuning is the simplest "
            "(docs/results.md)"
        ),
        details=lambda facts: (_size(facts),),
    ),
    Decision(
        case=f"fewer than {ONE_BATCH} dev examples, or a label that dev has no example of",
        applies=lambda facts: facts.dev < ONE_BATCH or bool(facts.missing_in_dev),
        method="mt_tartan",
        because=(
            "too little to learn weights against, so they are fixed; the paper's MT-TARTAN comes "
            "within about two points of META-TARTAN"
        ),
        details=_fixed_weights,
    ),
    Decision(
        case="text, and none of the domain",
        applies=lambda facts: facts.text and not facts.domain,
        method="mt_tartan",
        because=(
            "on the task's own text the paper finds MT-TARTAN and META-TARTAN alike, and MT-TARTAN "
            "costs less"
        ),
        details=_together,
    ),
    Decision(
        case="else",
        applies=lambda facts: True,
        method="meta_tartan",
        because=(
            "the weights of the tasks are learned against dev: one rate (weighting.eta) to choose, "
            "not each weight"
        ),
        details=_together,
    ),
)
"""The rows in order; the last one always applies."""
