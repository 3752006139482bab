"""The command `tartan check`, with the options of `tartan run`.

Heavy modules are imported inside functions, so that `--help` answers at once.
"""

import json
import sys
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from tartan.predict.main import quote_values
from tartan.runs.command_line import hydra_command, run_command_line, stop
from tartan.runs.folder import run_name

OmegaConf.register_new_resolver("run_name", run_name, replace=True)


@hydra_command("check")
def main(config: DictConfig) -> None:
    """Print the findings about a run of `config`; the exit code is 1 after an error."""
    from tartan.runs.command_line import quiet_libraries

    output = None if config.output is None else Path(str(config.output)).expanduser()
    if output is not None:
        output.touch()  # now, rather than after minutes
    quiet_libraries()
    if config.model is not None:
        from tartan.check.labels import review

        review(config).to_csv(output or sys.stdout, index=False)
        return
    from tartan.check.findings import findings_of
    from tartan.check.tables import print_findings

    findings = findings_of(config)
    print_findings(findings)
    if output is not None:
        text = json.dumps(findings.as_json(), indent=1, ensure_ascii=False, default=int)
        output.write_text(f"{text}\n", encoding="utf-8")
        print(f"\nnumbers in {output}")


def command() -> None:
    """Run the command line of this process."""
    if {"-m", "--multirun"} & set(sys.argv[1:]):
        stop("tartan check looks at one run; leave out -m")
    named = {argument.lstrip("+").partition("=")[0] for argument in sys.argv[1:]}
    if "task.train" in named and named.isdisjoint({"task", "experiment", "model"}):
        sys.argv.append("+experiment=custom")  # as tartan compare, which takes the same options
    sys.argv[1:] = quote_values(sys.argv[1:])
    run_command_line(main)


if __name__ == "__main__":
    command()
