"""Counts the functions of this project that a run enters before its first update.

Usage: `python -m benchmarks.functions_entered +experiment=acl_arc_meta data_dir=FOLDER`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from hydra import compose, initialize_config_dir

from tartan.settings import CONF

PACKAGE = str(Path(CONF).parent)


class _FirstUpdate(Exception):  # noqa: N818
    """Ends the run where its first update would begin."""


def functions_entered(overrides: list[str]) -> set[tuple[str, str, int]]:
    """Return file, name and line of each function that a run enters before its first update."""
    from tartan.methods.module import TaskMixing
    from tartan.runs.run import run_experiment

    entered: set[tuple[str, str, int]] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<")
        if event == "call" and ours:
            entered.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    def stop(*_: Any, **__: Any) -> None:
        raise _FirstUpdate

    with initialize_config_dir(CONF, version_base="1.3"):
        config = compose("config", overrides=overrides)
    TaskMixing.training_step = stop  # type: ignore[method-assign, assignment]
    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(profile)
        try:
            run_experiment(config, folder)
        except _FirstUpdate:
            pass
        finally:
            sys.setprofile(None)
    return entered


if __name__ == "__main__":
    found = functions_entered(sys.argv[1:])
    print(f"{len(found)} functions in {len({file for file, _, _ in found})} files")
