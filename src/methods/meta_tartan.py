"""META-TARTAN: MT-TARTAN with weights learned against the validation loss (section 3.2)."""

from __future__ import annotations

from typing import Any

from src.core.meta_head import MetaHeadSettings
from src.methods.module import TaskMixing


class MetaTartan(TaskMixing):
    """Multi-tasking with a meta head, refitted in every step for the meta-gradient.

    With a weighting that needs no meta-gradient (`weighting=uniform`, ...) the meta head is not
    built and the method is MT-TARTAN with that weighting.
    """

    trains_end_task = True
    trains_auxiliaries = True
    has_meta_head = True

    def __init__(
        self, *args: Any, meta_head: MetaHeadSettings | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, meta_head=meta_head or MetaHeadSettings(), **kwargs)
