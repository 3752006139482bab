"""Numbers of trained weights that are kept in a file and compared with fresh ones.

`python -m tests.contract.golden` writes the file anew; whoever does that says why.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from omegaconf import OmegaConf
from torch import Tensor

import tartan
from tests.conftest import ROOT, toy_rows

FILE = Path(__file__).with_name("golden.json")
NEEDS_OBJECTIVES = ("aang", "aang_static")
"""Weightings of composed objectives, which `test_commands.py` trains."""
LEARNED = ("meta", "uncertainty")
WEIGHTINGS = sorted(
    path.stem for path in (ROOT / "conf" / "weighting").glob("*.yaml")
    if path.stem not in NEEDS_OBJECTIVES
)  # fmt: skip
CASES = ["finetune", "continued_pretraining", *WEIGHTINGS]


def numbers_of(tensors: Mapping[str, Tensor]) -> list[float]:
    """Return the norm of all tensors, and their product with a fixed vector, in float64."""
    square, product = [], []
    for name in sorted(tensors):
        flat = tensors[name].detach().double().flatten()
        places = torch.arange(len(flat), dtype=torch.float64)
        square.append(flat.square().sum().item())
        product.append((flat * torch.sin(places + len(product))).sum().item())
    return [math.sqrt(math.fsum(square)), math.fsum(product)]


def toy_module(case: str, folder: Path) -> Any:
    """Return the module that `case` names after three steps in float64."""
    for split, rows in toy_rows().items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "corpus.txt").write_text(
        "".join(
            f"the {w} is {a}\n"
            for w in ("apple", "river", "stone")
            for a in ["red", "old", "big", "wet"]
        )
    )
    data = tartan.TartanData(
        *(folder / f"{split}.jsonl" for split in ("train", "dev")),
        auxiliaries={"tapt": "task", "dapt": folder / "corpus.txt"},
        encoder="tiny", batch_size=8, max_length=32, cache_dir=folder / "cache", name="toy",
    )  # fmt: skip
    methods = {"finetune": tartan.FineTuning, "continued_pretraining": tartan.ContinuedPretraining}
    method = methods.get(case, tartan.MetaTartan if case == "meta" else tartan.MTTartan)
    more: dict[str, Any] = {}
    if case not in methods:
        node = OmegaConf.load(ROOT / "conf" / "weighting" / f"{case}.yaml")
        more["weighting"] = OmegaConf.to_container(node)
        if case == "dwa":
            more["weighting"]["window"] = 1
        if case == "static":
            more["weighting"]["values"] = {"end_task": 0.5, "tapt": 0.3, "dapt": 0.2}
    module = method.for_data(data, lr=1e-3, **more)
    trainer = Trainer(
        max_steps=3, precision="64-true", accelerator="cpu", default_root_dir=folder, logger=False,
        enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(module, datamodule=data)
    return module


def trained(case: str, folder: Path) -> dict[str, Any]:
    """Return the numbers of the body, of the heads and of the task weights of `case`."""
    module = toy_module(case, folder)
    state = module.state_dict()
    body = {name: value for name, value in state.items() if name.startswith("body.")}
    heads = {name: value for name, value in state.items() if name.startswith("heads.")}
    assert body
    assert heads
    numbers: dict[str, Any] = {"body": numbers_of(body), "heads": numbers_of(heads)}
    if case in LEARNED:
        learned = {name: v for name, v in state.items() if name.startswith("weighting.")}
        numbers["weighting"] = numbers_of(learned)
    return numbers


def main() -> None:
    """Write the numbers of all cases."""
    numbers = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            numbers[case] = trained(case, Path(folder))
    FILE.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
