"""The study's files: each composes, each spends what it says, and mistakes are one line."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
from omegaconf import OmegaConf

from studies.part import (
    RACE,
    SETFIT,
    TFIDF,
    TRAINER,
    all_parts,
    cells_of,
    read_part,
)
from tartan.runs.prepare import enabled_stages
from tests.in_process import config_of
from tests.studies.made_up_rows import PART, write_part


@pytest.mark.parametrize("name", all_parts())
def test_every_setting_of_a_part_is_a_run_that_takes_the_steps_its_budget_pays_for(name):
    part = read_part(name)
    # a setting's other budgets differ in numbers only
    first = {cell.setting: cell for cell in reversed(list(cells_of(name, part)))}
    for cell in first.values():
        if cell.method in (TFIDF, SETFIT, TRAINER, RACE):
            continue
        config = config_of([*cell.overrides, "data_dir=somewhere"])
        OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        stages = enabled_stages(config)
        setting, budget = part.settings[cell.setting], part.budgets[cell.budget]
        spent = 0.0
        for stage, cost in setting.stages.items():
            assert stages[stage].batch_size == part.batch_size
            assert stages[stage].max_epochs is None
            spent += stages[stage].max_steps * cost
        assert spent == pytest.approx(budget.multiple * part.steps, rel=0.03)
        beside = stages.keys() - setting.stages.keys()
        assert beside <= {"head_warmup"}  # the only one beyond a budget


def test_a_budget_or_a_setting_may_have_fewer_seeds(tmp_path):
    content = copy.deepcopy(PART) | {"seeds": 3}
    content["budgets"]["end"]["seeds"] = 2
    content["settings"]["tapt"]["seeds"] = 1
    part = read_part("toy", write_part(tmp_path, content))
    seeds = Counter(f"{cell.budget}/{cell.setting}" for cell in cells_of("toy", part))
    assert seeds == {"1x/finetune": 3, "1x/tapt": 1, "end/finetune": 2}
    for count in (1, 4):
        asked = list(cells_of("toy", part.with_seeds(count)))
        assert Counter(f"{cell.budget}/{cell.setting}" for cell in asked) == dict.fromkeys(
            seeds, count
        )


def test_stages_share_a_budget_equally_and_only_those_with_the_end_task_are_evaluated(tmp_path):
    part = read_part("toy", write_part(tmp_path))
    assert part.steps_of(part.settings["tapt"], part.budgets["1x"]) == {"tapt": 12, "finetune": 25}
    cells = {cell.place: set(cell.overrides) for cell in cells_of("toy", part)}
    tapt = cells["toy/1x/tapt/seed1"]
    assert {"seed=1", "method=tapt", "method.stages.finetune.evaluate_every=13"} <= tapt
    assert not any("tapt.evaluate_every" in option for option in tapt)
    assert {
        "method.stages.finetune.max_steps=150",
        "method.stages.finetune.evaluate_every=25",
        "method.stages.finetune.patience=2",
    } <= cells["toy/end/finetune/seed0"]


def test_each_seed_of_a_search_takes_its_own_draws(tmp_path):
    content = copy.deepcopy(PART) | {"trials": {"rate": [0.1, 0.2], "kind": ["first", "mean"]}}
    content["options"] += ["classifier.pooling=$kind", "task.split_seed=${seed}"]
    content["settings"]["finetune"]["options"] = ["encoder.lr.finetune=$rate"]
    part = read_part("toy", write_part(tmp_path, content))
    drawn = {
        (cell.seed, option.partition("=")[2])
        for cell in cells_of("toy", part)
        for option in cell.overrides
        if option.startswith(("encoder.lr", "classifier.pooling", "task.split_seed"))
    }
    assert drawn == {
        (0, "0.1"),
        (1, "0.2"),
        (0, "first"),
        (1, "mean"),
        (0, "${seed}"),
        (1, "${seed}"),
    }
