"""Refuse to build what would break later: TARTAN is used from a checkout.

A wheel would lack `conf/`, which `python -m src.run` reads, and would install a top-level package
named `src`. Everything else about the project is declared in `pyproject.toml`.
"""

from typing import NoReturn

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class NoWheel(bdist_wheel):
    """Build no wheel; an editable installation (`pip install -e .`) does not call this."""

    def run(self) -> NoReturn:
        raise SystemExit(
            "TARTAN is used from a checkout, which holds its configs (conf/): "
            "run `make setup`, or `pip install -e .`"
        )


setup(cmdclass={"bdist_wheel": NoWheel})
