"""Options that lie below their group's name are told from those that belong there."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from tartan.configuration.package_header import misplaced_group


@pytest.mark.parametrize(
    ("config", "group"),
    [
        ({"seed": 1, "method": {"name": "mine", "stages": {}}}, None),
        ({"experiment": {"seed": 1}}, "experiment"),
        ({"search": {"hydra": {"sweeper": {}}}}, "search"),
        ({"debug": {"max_steps": 3}, "task": {"name": "${debug.max_steps}"}}, None),
        ({"method": {"method": {"name": "mine"}}}, "method"),
        ({"experiment": "mine"}, None),
    ],
)
def test_the_group_is_named(config, group):
    assert misplaced_group(OmegaConf.create(config)) == group
