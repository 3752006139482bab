"""A file without its first line is named once, before the first run."""

from __future__ import annotations

import pytest

from tartan.command_line.package_header import HEADER

LACKS = f"lacks {HEADER}"

FILES = {
    "search": "defaults:\n  - base\nhydra:\n  sweeper:\n    params:\n      seed: choice(1, 2)\n",
    "experiment": "max_steps: 3\n",
    "method": "defaults:\n  - /stage@method.stages.joint: mt_joint\nmethod:\n  name: mine\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [[], ["-m"]])
@pytest.mark.parametrize("group", FILES)
def test_it_ends_the_command_before_the_first_run(group, sweep, run_cli, tmp_path):
    own = tmp_path / "my_conf" / group / "mine.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(f"# a comment\n# @package _global_\n{FILES[group]}")
    plus = "" if group == "method" else "+"
    finished = run_cli(*sweep, "--config-dir", "my_conf", f"{plus}{group}=mine", timeout=60)
    assert finished.returncode == 1
    assert finished.stderr == f"error: {group}/mine.yaml {LACKS}\n"
    assert not (tmp_path / "runs").exists()
