"""The auxiliary task of appendix A.4: classify images of the data set's other classes."""

from __future__ import annotations

from dataclasses import dataclass

from tartan.configuration.options import Checked, Natural, Size
from tartan.data.auxiliary import AuxiliaryContext, AuxiliaryExamples, choose_rows, size_of
from tartan.data.image_task import ImageTask
from tartan.encoders.base import Encoder
from tartan.encoders.wide_resnet import require_image_encoder
from tartan.errors import UserError
from tartan.objectives.image_classification import ImageClassification


@dataclass(frozen=True)
class OtherClasses(Checked):
    """Classifies images of the classes that are not in the end task (see `Auxiliary`).

    Attributes:
        size: images, in multiples of the end task's training images, or `all`; None takes
            `auxiliary.size`.
        shift: see `ImageClassification`.
        flip: see `ImageClassification`.
    """

    size: Size | None = None
    shift: Natural = 0
    flip: bool = False

    @property
    def kind(self) -> str:
        return "domain"

    @property
    def left_out(self) -> bool:
        return False

    def check(self, name: str, encoder: Encoder) -> None:
        """See `Auxiliary.check`."""
        require_image_encoder(encoder, f"auxiliary {name}")

    def examples(self, name: str, context: AuxiliaryContext) -> AuxiliaryExamples:
        """Return the other classes' training images, or as many of them as the size asks for.

        Raises:
            UserError: the end task is not one of images, or there are fewer images than asked for.
        """
        task = context.end_task
        if not isinstance(task, ImageTask):
            given = "there is no end task" if task is None else f"task {task.name} is not"
            raise UserError(f"auxiliary {name} is images, but {given}")
        if context.decontaminate:
            raise UserError("auxiliary.decontaminate=true is for text; leave it out for images")
        self.check(name, context.encoder)
        if len(task.other_labels) < 2:
            raise UserError(
                f"auxiliary {name} needs two or more classes that task.end_classes leaves, but "
                f"{task.name} has only {len(task.other_labels)}"
            )
        size, option = size_of(name, self.size, context.default_size)
        source, images = f"{task.name} other classes", task.others
        if size is not None:
            rows = choose_rows(
                len(images), size, context.train_examples, context.seed, option, source
            )
            images = images.at(rows)
        objective = ImageClassification(len(task.other_labels), self.shift, self.flip)
        return AuxiliaryExamples(objective, images.rows(), source, size, images.fingerprint())
