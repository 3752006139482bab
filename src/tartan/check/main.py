"""The command line `python -m src.check`, with the options of `python -m src.run`.

Heavy modules are imported inside functions, so that `--help` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

import hydra
from omegaconf import DictConfig, OmegaConf

from tartan.command_line.hydra_errors import run_command_line
from tartan.configuration.folder import CONF
from tartan.errors import UserError
from tartan.run_folder.name import run_name
from tartan.run_folder.stop import stop

OmegaConf.register_new_resolver("run_name", run_name, replace=True)


@hydra.main(version_base="1.3", config_path=CONF, config_name="check")
def main(config: DictConfig) -> None:
    """Print the findings about a run of `config`; the exit code is 1 after an error."""
    try:
        _check(config)
    except UserError as error:
        stop(error)


def _check(config: DictConfig) -> None:
    from tartan.command_line.output_file import output_file

    output = None if config.output is None else output_file(config.output)
    # the profiler that tells peaks of memory says on stderr when it starts and stops
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")

    from tartan.check.findings import findings_of
    from tartan.check.tables import print_findings
    from tartan.command_line.quiet import quiet_libraries

    quiet_libraries()
    found, advice = findings_of(config)
    print_findings(found, advice)
    if output is not None:
        numbers = asdict(found) | {"recommendation": asdict(advice)}
        text = json.dumps(numbers, indent=1, ensure_ascii=False, allow_nan=False)
        try:
            output.write_text(f"{text}\n", encoding="utf-8")
        except OSError as error:
            raise UserError(f"output={output}: cannot write it ({error.strerror})") from error
        print(f"\nnumbers in {output}")


def command() -> None:
    """Run the command line of this process."""
    if {"-m", "--multirun"} & set(sys.argv[1:]):
        stop("src.check looks at one run; leave out -m")
    run_command_line(main)


if __name__ == "__main__":
    command()
