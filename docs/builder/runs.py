"""Draws the pictures of the output page: a run's task weights, and a report as browsers show it.

`python -m docs.builder.runs RUN` draws `docs/images/task_weights.svg` from a run folder, and
`python -m docs.builder.runs REPORT/report.html` draws `docs/images/report.svg` with Chromium.
"""

import base64
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tartan.figures import draw_task_weights
from tartan.methods.step_log import STEP_LOG
from tartan.runs.result import read_result

IMAGES = Path(__file__).parents[1] / "images"
WIDTH, HEIGHT = 1000, 940


def draw_weights(run: Path) -> None:
    """Draw the task weights of a run's last stage."""
    result = read_result(run)
    stage = result.stages[-1]
    title = f"{result.method} on {result.task} ({result.encoder})"
    target = IMAGES / "task_weights.svg"
    draw_task_weights(run / STEP_LOG, stage.name, stage.evaluations, result.metric, title, target)


def draw_page(page: Path) -> None:
    """Draw the top of a page in light and dark: one SVG shows what suits the page around it."""
    images = ""
    with TemporaryDirectory() as folder:
        for name, scheme in (("light", 1), ("dark", 0)):
            shot = Path(folder) / f"{name}.png"
            options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--screenshot={shot}"]
            options += [f"--window-size={WIDTH},{HEIGHT}"]
            options += [f"--blink-settings=preferredColorScheme={scheme}"]
            subprocess.run(["chromium", *options, page.resolve().as_uri()], check=True)
            content = base64.b64encode(shot.read_bytes()).decode("ascii")
            images += f'<image class="{name}" width="{WIDTH}" height="{HEIGHT}" '
            images += f'href="data:image/png;base64,{content}"/>\n'
    dark = "@media (prefers-color-scheme: dark) {.light {display: none} .dark {display: inline}}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
    rules = f"<style>.dark {{display: none}} {dark}</style>"
    (IMAGES / "report.svg").write_text(f"{head}\n{rules}\n{images}</svg>\n", encoding="utf-8")


if __name__ == "__main__":
    for name in map(Path, sys.argv[1:]):
        draw_weights(name) if name.is_dir() else draw_page(name)
