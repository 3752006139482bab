"""Composes auxiliary objectives of given parts (AANG, Dery et al., 2023)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tartan.core.task_names import SEPARATOR
from tartan.data.prepared import AuxiliaryContext, AuxiliaryExamples
from tartan.data.text_auxiliary import TextAuxiliary, text_task_of
from tartan.encoders.base import Encoder
from tartan.encoders.text_encoder import require_text_encoder
from tartan.errors import UserError
from tartan.kernels.packing import respects_pair_masks
from tartan.objectives.composed import Composed, Output, Representation, Transform


@dataclass(frozen=True)
class ObjectiveSpace:
    """All legal combinations of a text, a transform, a representation and an output, by name."""

    data: Mapping[str, TextAuxiliary]
    transforms: Mapping[str, Transform]
    representations: Mapping[str, Representation]
    outputs: Mapping[str, Output]

    def members(self, name: str) -> dict[str, ComposedAuxiliary]:
        """Return an auxiliary task for each legal combination of the space `auxiliary.NAME`."""
        sources = {key: _Source(f"{name}.data.{key}", text) for key, text in self.data.items()}
        members = {}
        stages = (self.data, self.transforms, self.representations, self.outputs)
        for parts in itertools.product(*stages):
            if any(SEPARATOR in part for part in parts):  # the names could not be told apart
                raise UserError(f"auxiliary {name}: the parts {parts} must hold no hyphen")
            data, transform, representation, output = parts
            objective = Composed(
                self.transforms[transform],
                self.representations[representation],
                self.outputs[output],
                shared_head=f"{name}.{output}",
            )
            if is_legal(self.data[data], objective.representation, objective.output):
                group = SEPARATOR.join((data, transform))
                members[SEPARATOR.join(parts)] = ComposedAuxiliary(sources[data], objective, group)
        if not members:
            raise UserError(f"auxiliary {name}: no combination of its parts is legal")
        return members


def is_legal(text: TextAuxiliary, representation: Representation, output: Output) -> bool:
    """Return whether the text has the labels, and the body the context, that the output needs."""
    if output.needs_labels and text.text != "task":
        return False
    return representation.sees_both_sides or not output.needs_both_sides


@dataclass
class _Source:
    """A text that many objectives share: read once."""

    name: str
    text: TextAuxiliary
    _examples: dict[bool, AuxiliaryExamples] = field(default_factory=dict)
    _takes_pair_masks: bool | None = None

    def check(self, encoder: Encoder, objective: Composed) -> None:
        replace(self.text, objective=objective).check(self.name, encoder)
        reader = require_text_encoder(encoder, f"auxiliary {self.name}")
        if not objective.representation.restricts_attention:
            return
        if self._takes_pair_masks is None:
            position, tokens = reader.first_position, reader.ordinary_tokens
            self._takes_pair_masks = respects_pair_masks(reader.body, tokens, position)
        if not self._takes_pair_masks:
            kind = type(objective.representation).__name__
            raise UserError(f"encoder {reader.name} takes no masks of pairs, as {kind} needs them")

    def examples(self, context: AuxiliaryContext, labelled: bool) -> AuxiliaryExamples:
        if labelled not in self._examples:
            self._examples[labelled] = self.text.examples(self.name, context, labelled=labelled)
        return self._examples[labelled]


@dataclass(frozen=True)
class ComposedAuxiliary:
    """One objective of a space as an auxiliary task (see `Auxiliary`).

    Objectives of the same `draw_group` see the same texts, changed in the same way.
    """

    source: _Source = field(repr=False)
    objective: Composed
    draw_group: str

    left_out = False

    @property
    def kind(self) -> str:
        return self.source.text.text

    def check(self, name: str, encoder: Encoder) -> None:
        self.source.check(encoder, self.objective)

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """See `Auxiliary.examples`; an objective that needs labels gets only labelled texts."""
        task = text_task_of(name, context)
        if self.objective.output.needs_labels and not task.kind.one_label:
            raise UserError(f"auxiliary {name} predicts single labels; task.kind={task.kind.name}")
        objective = replace(self.objective, classes=len(task.labels))
        group = self.draw_group
        every = self.source.examples(context, False)
        examples = self.source.examples(context, objective.output.needs_labels)
        if len(examples.rows) != len(every.rows):  # its batches cannot be those of the others
            group = f"{group}{SEPARATOR}labelled"
        return replace(examples, objective=objective, draw_group=group)
