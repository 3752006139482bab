"""A finished run answers with its stored result, if it is the same run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from src.errors import UserError
from src.run_folder.name import ELSEWHERE


def stored_result(config: DictConfig, folder: Path) -> dict[str, Any] | None:
    """What `result.json` in `folder` holds; None if no run was finished there.

    Raises:
        UserError: the folder holds a run of another config; names the options that differ.
    """
    path = folder / "result.json"
    if not path.is_file():
        return None
    stored = dict(_leaves(OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))))
    ours = dict(_leaves(OmegaConf.to_container(config, resolve=True)))
    differing = [k for k in sorted(stored.keys() | ours) if stored.get(k) != ours.get(k)]
    if differing:
        first = differing[0]
        more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
        raise UserError(
            f"{folder} holds another run: {first} is {stored.get(first)!r} there, "
            f"{ours.get(first)!r} here{more}; name another folder: hydra.run.dir=FOLDER"
        )
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _leaves(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Options by dotted name, without those that do not change what is trained."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name not in ELSEWHERE:
                yield from _leaves(value, f"{key}.{name}" if key else str(name))
    else:
        yield key, node
