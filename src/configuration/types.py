"""Types of options that say what is allowed; checks, messages and the reference read them."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AllowInfNan

Natural = Annotated[int, Ge(0)]
Count = Annotated[int, Ge(1)]
Length = Annotated[int, Ge(8)]
"""Of an input: an encoder's special tokens, and some room between them [tokens]."""
NonNegative = Annotated[float, Ge(0)]
Positive = Annotated[float, Gt(0)]
Temperature = Annotated[float, Gt(0), AllowInfNan(True)]
"""Of a softmax: infinite where all are to be equal."""
Share = Annotated[float, Gt(0), Le(1)]
Part = Annotated[float, Gt(0), Lt(1)]
"""A share that leaves something."""
Below1 = Annotated[float, Ge(0), Lt(1)]
Fraction = Annotated[float, Ge(0), Le(1)]
Size: TypeAlias = Positive | Literal["all"]
"""Of an auxiliary task, in multiples of the end task's training examples."""
