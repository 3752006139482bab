"""The command `tartan export`; heavy modules are imported inside, so that --help is quick."""

import sys

import hydra
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError, printable
from tartan.predict.main import quote_values
from tartan.runs.command_line import run_command_line, stop
from tartan.runs.folder import run_name
from tartan.settings import CONF

OmegaConf.register_new_resolver("run_name", run_name, replace=True)


@hydra.main(version_base="1.3", config_path=CONF, config_name="export")
def main(config: DictConfig) -> None:
    """Write a classifier in ONNX, and print what it lost and gained."""
    from tartan.export.export import Settings, export
    from tartan.runs.command_line import quiet_libraries
    from tartan.settings import typed

    quiet_libraries()
    names = ["model", "format", "output", "max_loss"]
    try:
        exported = export(typed(OmegaConf.masked_copy(config, names), Settings), config)
    except (UserError, OSError) as error:
        stop(error)
    print(exported.words)
    print(printable(f"classifier {exported.folder}"))


def command() -> None:
    """Run the command line of this process."""
    sys.argv[1:] = quote_values(sys.argv[1:])
    run_command_line(main)


if __name__ == "__main__":
    command()
