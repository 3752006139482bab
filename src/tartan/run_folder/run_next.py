"""Ends a search: finds the settings that did best on dev, and the command to run next."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from statistics import fmean
from typing import Any

from tartan.files import write_text_durably
from tartan.run_folder.name import PROGRAM, RESULT, option_of

RUN_NEXT = "run_next.txt"
"""File in the search's folder with that command, and the scores that it was chosen by.

Further searches in the same folder write `run_next-2.txt`, ...
"""
_FOUND_BY = "# found by: "
"""Beginning of the line with the search's own command."""
OF_THE_SEARCH = ("evaluate_test", "search", "seed", "resume", "hydra.sweep.dir")
"""Options of a search's jobs that are not part of the found settings."""


def write_run_next(jobs: Sequence[dict[str, Any]], folder: Path, search: Sequence[str]) -> None:
    """Write and print the command with the settings that did best on dev.

    Jobs that differ only in their seed count by their mean; of equal settings the first is taken.
    Nothing is written where no job is finished. The file replaces that of the same search alone.

    Args:
        jobs: the records of the search's jobs.
        folder: the search's folder.
        search: the search's own arguments.
    """
    from tartan.run_folder.result import read_result  # here: it takes time that --help has not

    merits: dict[tuple[str, ...], list[float]] = defaultdict(list)
    scores: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for job in jobs:
        folder_of_job = Path(job["folder"])
        if (folder_of_job / RESULT).is_file():
            result, settings = read_result(folder_of_job, bounded=False), _settings(job["command"])
            merits[tuple(settings)].append(result.merit)
            scores[tuple(settings)].append(result.dev_score)
    if not scores:
        return
    ranked = sorted(scores.items(), key=lambda item: -fmean(merits[item[0]]))
    best, values = ranked[0]
    lines = [
        f"# dev {fmean(values):.4f}, the best of {len(ranked)} settings; not evaluated on test yet",
        shlex.join([*PROGRAM, "-m", *best, "seed=0,1,2"]),
        "",
        f"{_FOUND_BY}{shlex.join([*PROGRAM, '-m', *search])}",
        "# all settings",
        *(f"# {fmean(found):.4f}  {' '.join(settings)}" for settings, found in ranked),
    ]
    path = _file_of(search, folder)
    write_text_durably(path, "\n".join(lines) + "\n")
    print(f"best on dev: {fmean(values):.4f}; run this next ({path}):")
    print(f"  {lines[1]}")


def _file_of(search: Sequence[str], folder: Path) -> Path:
    """Return the file that the same search has written, else the first unused one."""
    first = folder / RUN_NEXT
    for path in folder.glob(f"{first.stem}*{first.suffix}"):
        if _arguments_in(path) == frozenset(search):
            return path
    further = (first.with_stem(f"{first.stem}-{number}") for number in count(2))
    return next(path for path in chain([first], further) if not path.exists())


def _arguments_in(path: Path) -> frozenset[str] | None:
    """Return the arguments of the search that wrote a file; None where the file has none."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(_FOUND_BY):
            # what the file has may have been altered, so that it is no command any more
            with suppress(ValueError):
                return frozenset(shlex.split(line.removeprefix(_FOUND_BY))[len(PROGRAM) + 1 :])
    return None


def _settings(command: str) -> list[str]:
    """Return a job's overrides without those of the search itself."""
    overrides = shlex.split(command)[len(PROGRAM) :]
    return [o for o in overrides if option_of(o) not in OF_THE_SEARCH]
