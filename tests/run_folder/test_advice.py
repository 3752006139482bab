"""The option that is advised is one that the command takes."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton

from tartan.run_folder.advice import folder_option
from tests.in_process import CONF


@pytest.mark.parametrize(
    ("mode", "option"), [("RUN", "hydra.run.dir=FOLDER"), ("MULTIRUN", "hydra.sweep.dir=FOLDER")]
)
def test_it_depends_on_the_command(mode, option):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=[f"hydra.mode={mode}"], return_hydra_config=True)
    before = Singleton.get_state()
    try:
        HydraConfig.instance().set_config(config)
        assert folder_option() == option
    finally:
        Singleton.set_state(before)


def test_a_program_without_hydra_has_one_too():
    assert folder_option() == "hydra.run.dir=FOLDER"
