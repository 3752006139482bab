"""README's program, as its readers run it: in a process of its own, in a folder of their own."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from functools import partial
from math import cos, pi
from pathlib import Path

import pytest
from lightning.pytorch.callbacks import LambdaCallback
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from tartan.methods import MetaTartan
from tests.conftest import ROOT
from tests.methods.lightning import toy_data, trainer
from tests.programs import PYTHONPATH

pytestmark = pytest.mark.slow

TEXTS = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/lightning.md")
}


def program(name: str) -> str:
    """The first Python block of a page."""
    found = re.search(r"```python\n(.*?)```", TEXTS[name], flags=re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def folder(data_dir, tmp_path) -> Path:
    """Tables and texts by the names that the program has for them."""
    import json

    for table, split in (("labels", "train"), ("dev", "dev")):
        lines = (data_dir / "toy" / f"{split}.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        with (tmp_path / f"{table}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["text", "label"])
            writer.writeheader()
            writer.writerows(rows)
    (tmp_path / "texts").mkdir()
    corpus = [line for line in (data_dir / "corpus.txt").read_text().splitlines() if line]
    (tmp_path / "texts" / "a.txt").write_text("\n".join(corpus) + "\n")
    return tmp_path


def run(code: str, folder: Path, cache_dir: Path, *arguments: str) -> str:
    (folder / "program.py").write_text(code, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": PYTHONPATH,
        "TARTAN_CACHE_DIR": str(cache_dir),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [sys.executable, "program.py", *arguments], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_is_short_and_the_same_in_readme_and_docs():
    code = program("README.md")
    assert len(code.splitlines()) <= 12
    assert code == program("docs/lightning.md")
    # within the first two screens
    assert TEXTS["README.md"].index(code.splitlines()[0]) < len("\n".join(["x" * 60] * 100))


def test_the_pages_other_examples_run(data_dir, cache_dir, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TARTAN_CACHE_DIR", str(cache_dir))
    blocks = re.findall(r"```python\n(.*?)```", TEXTS["docs/lightning.md"], re.DOTALL)
    _, settings, chain, from_checkpoint, several, cosine, watched, resumed, _ = blocks
    names = {"data": toy_data(data_dir, cache_dir), "Trainer": partial(trainer, folder)}
    exec(settings, names)
    assert names["module"].weighting.alpha.tolist() == [0.5, 0.25, 0.25]
    exec("from tartan.methods import ContinuedPretraining, FineTuning", names)
    assert chain.count("max_epochs=") == 2
    exec(re.sub(r"max_epochs=\d+", "max_steps=1", chain), names)
    assert names["module"].body is names["pretraining"].body
    exec(cosine, names)
    annealed = names["Cosine"].for_data(names["data"], lr=1e-3)
    rates = []
    noting = LambdaCallback(
        on_train_batch_start=lambda trainer, *_: rates.append(
            trainer.optimizers[0].param_groups[0]["lr"]
        )
    )
    trainer(folder, max_steps=10, callbacks=[noting]).fit(annealed, datamodule=names["data"])
    assert rates == pytest.approx([1e-3 * (1 + cos(pi * step / 10)) / 2 for step in range(10)])
    exec(several, dict(names))
    exec(watched, names)
    joint = trainer(folder, max_steps=1, callbacks=[names["Watch"]()])
    joint.fit(MetaTartan.for_data(names["data"], lr=1e-3), datamodule=names["data"])
    assert "1 {'end_task': " in capsys.readouterr().out
    joint.save_checkpoint("joint.ckpt")
    again = dict(names)
    exec(from_checkpoint, again)
    assert again["module"].heads["end_task"] is again["earlier"].heads["end_task"]
    names["pretraining"].save_pretrained("encoder")
    assert AutoModelForMaskedLM.from_pretrained("encoder").num_parameters() > 0
    assert "max_steps=300" in resumed
    exec(resumed.replace("from lightning.pytorch import Trainer\n", "").replace("300", "12"), names)
    assert Path(names["points"].best_model_path).is_file()


@pytest.mark.longest
def test_the_program_scores_and_saves_a_classifier(folder, cache_dir):
    code = program("README.md").replace('"minilm"', '"tiny"').replace("=300", "=5")
    assert "test/macro_f1" in run(code, folder, cache_dir)
    assert load_file(folder / "classifier" / "model.safetensors")


SAVED = """
import sys
from lightning.pytorch import Trainer
from tartan import TartanData
from tartan.methods.strategy import ReplicaStrategy, ShardStrategy
from tartan.methods import MetaTartan

how = sys.argv[1]
strategy = {"one": "auto", "replicas": ReplicaStrategy(), "shards": ShardStrategy()}[how]
data = TartanData("labels.csv", "dev.csv", auxiliaries={"tapt": "task"}, encoder="tiny",
                  batch_size=8, sizes={"micro_batch_size": 3})
module = MetaTartan.for_data(data, lr=2e-3)
trainer = Trainer(max_steps=2, accelerator="cpu", devices=1 if how == "one" else 2,
                  strategy=strategy, logger=False, enable_checkpointing=False,
                  enable_progress_bar=False)
trainer.fit(module, datamodule=data)
module.save_pretrained(how)
trainer.validate(module, datamodule=data)  # also after the body was gathered
"""


@pytest.mark.processes
def test_several_processes_save_what_one_does(folder, cache_dir):
    for how in ("one", "replicas", "shards"):
        run(SAVED, folder, cache_dir, how)
    one = folder / "one"
    for how in ("replicas", "shards"):
        saved = folder / how
        assert {p.name for p in saved.iterdir()} == {p.name for p in one.iterdir()}
        files = [load_file(path / "model.safetensors") for path in (one, saved)]
        assert files[0].keys() == files[1].keys()
        assert all((files[0][n] - files[1][n]).abs().max() < 1e-4 for n in files[0])
