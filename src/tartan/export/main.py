"""The command `tartan export`; heavy modules are imported inside, so that --help is quick."""

import sys

from omegaconf import DictConfig, OmegaConf

from tartan.errors import printable
from tartan.predict.main import quote_values
from tartan.runs.command_line import hydra_command, run_command_line
from tartan.runs.folder import run_name

OmegaConf.register_new_resolver("run_name", run_name, replace=True)


@hydra_command("export")
def main(config: DictConfig) -> None:
    """Write a classifier in ONNX, and print what it lost and gained."""
    from tartan.export.export import Settings, export
    from tartan.runs.command_line import quiet_libraries
    from tartan.settings import typed

    quiet_libraries()
    names = ["model", "format", "output", "max_loss"]
    exported = export(typed(OmegaConf.masked_copy(config, names), Settings), config)
    print(exported.words)
    print(printable(f"classifier {exported.folder}"))


def command() -> None:
    """Run the command line of this process."""
    sys.argv[1:] = quote_values(sys.argv[1:])
    run_command_line(main)


if __name__ == "__main__":
    command()
