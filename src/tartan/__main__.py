"""The command `tartan`: `tartan run ...` is `python -m src.run ...` from any folder."""

import runpy
import sys
from pathlib import Path

COMMANDS = {
    "run": ("tartan.runs.command", "train: +experiment=NAME, OPTION=VALUE, -m for sweeps"),
    "check": ("tartan.check.main", "look at your data before training; takes the options of run"),
    "compare": ("tartan.compare.main", "train every method at equal cost"),
    "predict": ("tartan.predict.main", "label a table: model=latest input=FILE output=FILE"),
    "export": ("tartan.export.main", "a classifier in ONNX: model=latest format=onnx-int8"),
    "report": ("tartan.report.main", "tables, statistics and figures of a folder of runs"),
    "build-corpus": ("tartan.corpus.main", "clean unlabelled text: sources=... output=FOLDER"),
}
"""The module and the description of each command."""


def main() -> None:
    """Run a command as `python -m MODULE` would: its worker processes start the same way."""
    if len(sys.argv) > 1 and sys.argv[1] in COMMANDS:
        module, _ = COMMANDS[sys.argv.pop(1)]
        sys.path.append(str(Path.cwd()))  # for a `_target_` there; last, to hide no library
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    print("usage: tartan COMMAND [OPTION=VALUE ...]\n")
    for name, (_, text) in COMMANDS.items():
        print(f"  {name:14}{text}")
    print("\ntartan COMMAND --help lists the options of a command.")
    if sys.argv[1:] not in ([], ["-h"], ["--help"]):
        sys.exit(f"error: there is no command {sys.argv[1]}")


if __name__ == "__main__":
    main()
