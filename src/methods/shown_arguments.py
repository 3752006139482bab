"""Shows a module's arguments without the files of its tokenizer."""

from __future__ import annotations

from lightning.fabric.utilities.data import AttributeDict


class ShownArguments(AttributeDict):
    """A module's arguments, which show the encoder by its name when they are printed."""

    def __repr__(self) -> str:
        return repr(AttributeDict({**self, "encoder": self["encoder"].get("name")}))
