"""Composes auxiliary objectives of given parts (AANG, Dery et al., 2023)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tartan.core.task_names import SEPARATOR
from tartan.data.auxiliary import AuxiliaryContext, AuxiliaryExamples
from tartan.data.text_auxiliary import AuxiliaryText, text_task_of
from tartan.encoders.base import Encoder
from tartan.encoders.pairwise_attention import check_pairwise_attention
from tartan.encoders.text_encoder import TextEncoder, require_text_encoder
from tartan.errors import UserError
from tartan.objectives.composed.objective import Composed
from tartan.objectives.composed.output import Output
from tartan.objectives.composed.representation import Representation
from tartan.objectives.composed.transform import Transform
from tartan.objectives.corruption import Vocabulary


@dataclass(frozen=True)
class ObjectiveSpace:
    """All legal combinations of a text, a transform, a representation and an output.

    Attributes:
        data: the texts by name.
        transforms: the input transforms by name.
        representations: the representations by name.
        outputs: the outputs by name.

    Raises:
        UserError: a group of parts is empty, a part's name holds a hyphen, or no combination is
            legal.
    """

    data: Mapping[str, AuxiliaryText]
    transforms: Mapping[str, Transform]
    representations: Mapping[str, Representation]
    outputs: Mapping[str, Output]

    def __post_init__(self) -> None:
        for stage in ("data", "transforms", "representations", "outputs"):
            parts = getattr(self, stage)
            if not parts:
                raise UserError(f"a space of objectives needs at least one of its {stage}")
            for name in parts:
                if SEPARATOR in str(name):
                    raise UserError(
                        f"{name!r} of a space's {stage} must hold no hyphen: hyphens join the "
                        "parts' names to an objective's; use an underscore"
                    )
        if not any(True for _ in self._choices()):
            raise UserError(
                "a space of objectives holds no legal one: end labels need text: task, and a "
                "representation of both sides"
            )

    def members(self, name: str) -> dict[str, ComposedAuxiliary]:
        """Return an auxiliary task for each legal combination, by name.

        Args:
            name: the key of the space below `auxiliary` in the config.
        """
        sources = {own: _Source(f"{name}.data.{own}", text) for own, text in self.data.items()}
        members = {}
        for data, transform, representation, output in self._choices():
            objective = Composed(
                self.transforms[transform],
                self.representations[representation],
                self.outputs[output],
                shared_head=f"{name}.{output}",
            )
            members[SEPARATOR.join((data, transform, representation, output))] = ComposedAuxiliary(
                sources[data], objective, SEPARATOR.join((data, transform))
            )
        return members

    def _choices(self) -> Iterator[tuple[str, str, str, str]]:
        parts = (self.data, self.transforms, self.representations, self.outputs)
        for names in itertools.product(*parts):
            data, _, representation, output = names
            if is_legal(
                self.data[data], self.representations[representation], self.outputs[output]
            ):
                yield names


def is_legal(text: AuxiliaryText, representation: Representation, output: Output) -> bool:
    """Return whether the text has the labels, and the body the context, that the output needs."""
    if output.needs_labels and text.text != "task":
        return False
    return representation.sees_both_sides or not output.needs_both_sides


@dataclass
class _Source:
    """A text that many objectives share: checked once and read once."""

    name: str
    text: AuxiliaryText
    _examples: dict[bool, AuxiliaryExamples] = field(default_factory=dict)
    _fitted: dict[Output, Output] = field(default_factory=dict)
    _tried: bool = False

    def check(self, encoder: Encoder, objective: Composed) -> None:
        text_encoder = self.text.check_text(self.name, encoder)
        objective.collate(text_encoder, 1)
        if objective.representation.restricts_attention and not self._tried:
            what = f"auxiliary representation {type(objective.representation).__name__}"
            check_pairwise_attention(text_encoder, what)
            self._tried = True

    def read(
        self,
        context: AuxiliaryContext,
        text_encoder: TextEncoder,
        objective: Composed,
        draw_group: str,
    ) -> AuxiliaryExamples:
        """Return the examples of an objective, with the group that its batches are drawn in.

        An objective that needs labels gets only the labelled texts. Where these are fewer than all
        of the task's texts, its batches cannot be those of the other objectives and get another
        group.
        """
        for labelled in (False, objective.output.needs_labels):
            if labelled not in self._examples:
                self._examples[labelled] = self.text.read(
                    self.name, context, objective, labelled=labelled
                )
        own = self._examples[objective.output.needs_labels]
        if len(own.rows) != len(self._examples[False].rows):
            draw_group = f"{draw_group}{SEPARATOR}labelled"
        output = objective.output
        if output not in self._fitted:
            vocabulary = Vocabulary.of(text_encoder, f"auxiliary {self.name}")
            self._fitted[output] = output.fit(own.rows, vocabulary)
        fitted = replace(objective, output=self._fitted[output])
        return replace(own, objective=fitted, draw_group=draw_group)


@dataclass(frozen=True)
class ComposedAuxiliary:
    """One objective of a space as an auxiliary task (see `Auxiliary`).

    Attributes:
        source: the text, which is shared with the space's other objectives.
        objective: the combination of transform, representation and output.
        draw_group: objectives with the same value see the same texts, changed in the same way.
    """

    source: _Source = field(repr=False)
    objective: Composed
    draw_group: str

    @property
    def kind(self) -> str:
        return self.source.text.text

    @property
    def left_out(self) -> bool:
        return False

    def check(self, name: str, encoder: Encoder) -> None:
        """See `Auxiliary.check`."""
        self.source.check(encoder, self.objective)

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """See `AuxiliaryText.read`."""
        classes = len(text_task_of(name, context).labels)
        text_encoder = require_text_encoder(context.encoder, f"auxiliary {name}")
        objective = replace(self.objective, classes=classes)
        return self.source.read(context, text_encoder, objective, self.draw_group)
