"""The sweep of a comparison finds its experiments and its folder, whatever that is called."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir

from tartan.compare.experiments import write_experiment
from tartan.compare.main import _sweep
from tartan.compare.request import request_of
from tests.conftest import ROOT


@pytest.mark.parametrize(
    "name", ["it", "my (new) runs", "a=b+c,d", "färg", "it's", 'say "x"', "\\"]
)
def test_a_folder_of_any_name_is_found(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (name, str(tmp_path / "above" / name)):
        request = request_of([f"folder={folder}", "methods=finetune", "batch_size=7"])
        write_experiment("finetune", request, {"finetune": 50})
        overrides = _sweep(request, request.folder, "0")[5:]
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            config = compose("config", overrides=overrides, return_hydra_config=True)
        assert config.hydra.sweep.dir == folder
        stage = config.method.stages.finetune
        assert (stage.batch_size, stage.max_steps) == (7, 50)


def test_a_plain_folder_is_not_quoted_in_commands(tmp_path):
    request = request_of([f"folder={tmp_path}"])
    assert f"hydra.sweep.dir={tmp_path}" in _sweep(request, request.folder, "0")
