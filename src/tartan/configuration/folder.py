"""Where the configs are that the package ships."""

from pathlib import Path

CONF = str(Path(__file__).parents[1].resolve() / "conf")
"""The folder of the shipped configs, which Hydra searches first."""
