"""The command line: `python -m src.run +experiment=acl_arc_meta`, and Hydra's sweeps with `-m`.

Only Hydra is imported here, so that `--help` and `--cfg job` answer at once; everything heavy is
imported inside the run.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from src.errors import UserError
from src.run_folder.name import run_name

OmegaConf.register_new_resolver("run_name", run_name, replace=True)


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def main(config: DictConfig) -> None:
    """Run one job of the command line."""
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    try:
        _run(config, folder)
    except KeyboardInterrupt:
        print(f"interrupted; the same command goes on ({folder})", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except SystemExit as stop:
        print(f"stopped by a signal; the same command goes on ({folder})", file=sys.stderr)
        raise stop
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        if hydra_config.mode == RunMode.MULTIRUN:
            raise  # a SystemExit would take the sweep's other jobs down
        sys.exit(1)


def _run(config: DictConfig, folder: Path) -> None:
    from src.run_folder.stored import fresh_folder, stored_result
    from src.run_folder.summary import print_summary

    if not config.resume:
        folder = fresh_folder(folder)
    result = stored_result(config, folder)
    if result is not None:
        print(f"{folder} holds this run, finished; remove the folder to run it again")
    else:
        from src.experiment import run_experiment
        from src.quiet import quiet_libraries

        quiet_libraries()
        result = run_experiment(config, folder)
    print_summary(result, folder)


if __name__ == "__main__":
    main()
