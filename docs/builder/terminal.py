"""Draws what `tartan check`, `compare` and `predict` print, as pictures of a terminal.

`python -m docs.builder.terminal FOLDER [NAME ...]` runs these commands, or those named, in a folder
with `labels.csv` (columns text and label), `texts/` (.txt files) and `new.csv` (column text), and
draws `docs/images/NAME.svg`. `FOLDER/NAME.ansi` keeps what was printed: delete it to run again.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path
from subprocess import DEVNULL, Popen

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI
from rich.text import Text

IMAGES = Path(__file__).parents[1] / "images"
WIDTH = 100
DATA = "task.train=labels.csv auxiliary.dapt.path=texts/ encoder=minilm"
COMMANDS = {
    "check": (f"tartan check {DATA}", 15, 25),
    "compare": (f"tartan compare {DATA} minutes=30", 9, 19),
    "predict": ("tartan predict model=latest input=new.csv output=predictions.csv", 20, 20),
}
"""Each command, and how many lines of its output are shown: of the first and of the last ones."""
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
"""What stands for the font that rich would load from the network."""


def record(command: str, folder: Path) -> bytes:
    """Return what a command prints in a folder when it writes to a terminal."""
    ours, its = pty.openpty()
    env = os.environ | {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    pieces = []
    with Popen(
        shlex.split(command), cwd=folder, env=env, stdin=DEVNULL, stdout=its, stderr=its
    ) as process:
        os.close(its)
        with suppress(OSError):  # how Linux says that no process writes any more
            while piece := os.read(ours, 65536):
                pieces.append(piece)
    os.close(ours)
    if process.returncode:
        sys.exit(f"error: {command} ended with {process.returncode}")
    return b"".join(pieces)


def screen(output: str) -> list[Text]:
    """Return the lines as they stand at the end: progress bars in their last state."""
    lines, row = [""], 0
    for part in re.split(r"(\n|\x1b\[1A|\r|\x1b\[2K)", output.replace("\r\n", "\n").rstrip()):
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part == "\x1b[1A":
            row -= 1
        elif part in ("\r", "\x1b[2K"):
            lines[row] = ""  # a whole line follows: nothing here returns to write a part of it
        else:
            lines[row] += re.sub(r"\x1b\[[?\d;]*[A-Za-ln-z]", "", part)  # all but colours
    return [Text.from_ansi(line) for line in lines]


def draw(command: str, lines: list[Text], first: int, last: int) -> str:
    """Return a picture of the first and last lines, light or dark as the page around it is."""
    if (left := len(lines) - first - last) > 0:
        lines[first:-last] = [Text(f"⋮ {left} lines", style="dim")]
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    for line in [Text.assemble(("$ ", "green"), (command, "bold")), *lines, Text()]:
        console.print(line, overflow="fold")
    light, dark = (
        console.export_svg(title="", theme=theme, clear=False, unique_id="t")
        for theme in (DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI)
    )
    light = re.sub(r"@font-face {.*?}\s*", "", light, flags=re.DOTALL)
    light = light.replace("Fira Code, monospace", FONTS)
    ground = f"svg > rect {{ fill: {DIMMED_MONOKAI.background_color.hex} }}"
    rules = " ".join([ground, *re.findall(r"\.t-r\d+ {.*?}", dark)])
    style = f"svg > rect {{ stroke: #8888 }} @media (prefers-color-scheme: dark) {{ {rules} }}"
    return light.replace("</style>", f"{style}\n    </style>")


def main(folder: Path, names: list[str]) -> None:
    """Record the commands that have no recording yet, and draw them."""
    for name in names or list(COMMANDS):
        command, first, last = COMMANDS[name]
        kept = folder / f"{name}.ansi"
        if not kept.exists():
            kept.write_bytes(record(command, folder))
        picture = draw(command, screen(kept.read_bytes().decode()), first, last)
        (IMAGES / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
