"""Makes batches for tests of one output, with unchanged texts that are read bidirectionally."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tartan.core.task import MicroBatch
from tartan.encoders.tiny import TinyEncoder
from tartan.objectives.base import Row
from tartan.objectives.composed.objective import Composed
from tartan.objectives.composed.output.base import Output
from tartan.objectives.composed.representation.bidirectional import Bidirectional
from tartan.objectives.composed.transform.unchanged import Unchanged
from tartan.objectives.vocabulary import Vocabulary

TINY = TinyEncoder(hidden_size=16, layers=2, dropout=0.0).load()
VOCABULARY = Vocabulary.of(TINY, "a test")
CLS, SEP = TINY.tokenizer.cls_token_id, TINY.tokenizer.sep_token_id
STOP = TINY.tokenizer.get_vocab()["."]


def text(*tokens: int) -> Row:
    """Return a text of these tokens between the special ones."""
    return {"input_ids": [CLS, *tokens, SEP]}


def objective(output: Output) -> Composed:
    return Composed(Unchanged(), Bidirectional(), output)


def batch(output: Output, rows: Sequence[Row], seed: int = 0) -> MicroBatch:
    """Return the only micro-batch of the rows, in which the shortest texts come first."""
    collate = objective(output).collate(TINY, 1000)
    (part,) = collate(rows, np.random.default_rng(seed)).micro_batches
    return part
