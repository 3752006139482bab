"""Which runs say that they are of one setting, and which of the same data."""

from __future__ import annotations

import pytest

from tartan.runs.identity import (
    FOLLOWS_SEED,
    METHODS,
    data_id,
    identified,
    label_of,
    setting_id,
)
from tartan.runs.result import Result
from tests.in_process import STAGES, config_of
from tests.report.made_up_runs import altered, result_of


def result(method="finetune", seed=0, **more):
    return Result.model_validate(result_of(method, seed, 0.5, **more))


def of_command(*options, seed=0, **more):
    """What a run of this command writes."""
    config = config_of([*options, f"seed={seed}"])
    method = str(config.method.name)
    return identified(result(method, seed, **more), config)


DAPT = {"auxiliaries": ["dapt"]}


def test_runs_of_one_command_but_for_the_seed_are_one_setting():
    one, two = (of_command("method=finetune", seed=s) for s in (0, 1))
    assert one.setting_id == two.setting_id
    assert one.data_id == two.data_id
    assert one.label == "Fine-tuning"


def test_data_that_each_seed_draws_are_compared_as_one():
    def drawn(seed, option):
        draws = altered(result_of("tapt", seed, 0.5, auxiliaries=["tapt"]),
                        "fingerprints.train", f"a, 20 labelled, seed {seed}")  # fmt: skip
        draws = altered(draws, "auxiliaries.tapt.fingerprint", f"tapt:{seed}")
        config = config_of(["method=tapt", f"seed={seed}", f"task.split_seed={option}"])
        return identified(Result.model_validate(draws), config)

    own = [drawn(seed, "${seed}") for seed in range(2)]
    given = [drawn(seed, seed) for seed in range(2)]
    assert len({(r.data_id, r.setting_id) for r in own}) == 1
    assert len({r.data_id for r in given}) == 2


def test_text_that_each_seed_draws_is_one_setting():
    def drawn(seed, option):
        draws = altered(result_of("dapt", seed, 0.5, **DAPT),
                        "auxiliaries.dapt.fingerprint", f"dapt:{seed}")  # fmt: skip
        config = config_of(["method=dapt", f"seed={seed}", f"auxiliary.seed={option}"])
        return identified(Result.model_validate(draws), config)

    assert len({drawn(seed, "${seed}").setting_id for seed in range(2)}) == 1
    assert len({drawn(seed, seed).setting_id for seed in range(2)}) == 2


def test_an_option_that_training_did_not_read_is_no_difference():
    others = [
        *("auxiliary.size=2", "weighting=static", "evaluation_batch_size=7"),
        *("num_workers=1", "paths.runs_dir=elsewhere"),
    ]
    plain, other = of_command("method=finetune"), of_command("method=finetune", *others)
    assert plain.setting_id == other.setting_id


@pytest.mark.parametrize(
    "option",
    ["auxiliary.size=2", "weighting=static", "micro_batch_size=7", "auxiliary.decontaminate=true",
     "method.stages.joint.optimisation.end_head_lr=0.5", "encoder.name=x"],
)  # fmt: skip
def test_an_option_that_training_read_is_a_difference(option):
    plain = of_command("method=mt_tartan", **DAPT)
    other = of_command("method=mt_tartan", option, **DAPT)
    assert plain.setting_id != other.setting_id


def test_the_precision_is_the_one_that_was_used():
    bf16, full = (
        Result.model_validate(altered(result_of("finetune", 0, 0.5), "machine.precision", used))
        for used in ("bf16-mixed", "32-true")
    )
    auto, given = {"trainer.precision": "auto"}, {"trainer.precision": "32-true"}
    assert setting_id(bf16, auto) != setting_id(full, auto) == setting_id(full, given)


@pytest.mark.parametrize(
    ("path", "value"),
    [("task", "x"), ("encoder", "x"), ("fingerprints", {"test": "c"}), ("metric", "micro_f1")],
)
def test_only_like_is_compared_with_like(path, value):
    other = Result.model_validate(altered(result_of("finetune", 0, 0.5), path, value))
    assert data_id(result(), drawn=False) != data_id(other, drawn=False)


@pytest.mark.parametrize(
    ("method", "options", "label"),
    [
        ("dapt", {}, "DAPT 10x"),
        ("dapt", {"auxiliary.dapt.path": "/x/news.txt"}, "DAPT 10x (news.txt)"),
        ("mt_tartan", {"task.domain": "d.txt"}, "MT-TARTAN, DAPT 10x (d.txt)"),
        ("mt_tartan", {"auxiliary.dapt.hub": "org/texts"}, "MT-TARTAN, DAPT 10x (texts)"),
        ("my_method", {}, "my_method, DAPT 10x"),
        (
            "meta_tartan",
            {"method.stages.joint.module": "mine.heads.Fixed"},
            "META-TARTAN (mine.heads.Fixed), DAPT 10x",
        ),
    ],
)
def test_labels_say_method_size_and_a_corpus_of_the_users(method, options, label):
    assert label_of(result(method, **DAPT), options) == label


@pytest.mark.parametrize("method", [method for method in STAGES if method in METHODS])
def test_the_papers_methods_are_no_variants_of_themselves(method):
    assert of_command(f"method={method}").label.startswith(METHODS[method])
    assert "FineTuning" not in of_command(f"method={method}").label


def test_what_follows_the_seed_does_not_count():
    one = result("dapt", **DAPT)
    other = altered(one.as_json(), "auxiliaries.dapt.fingerprint", "another corpus")
    assert setting_id(one, {}) != setting_id(Result.model_validate(other), {})
    assert setting_id(one, {"encoder.seed": FOLLOWS_SEED}) == setting_id(one, {})
    assert setting_id(one, {"encoder.seed": 0}) != setting_id(one, {})
    weighted = altered(result_of("mt_tartan", 0, 0.5, **DAPT), "weighting", "upgrad")
    assert label_of(Result.model_validate(weighted), {}) == "MT-TARTAN (upgrad), DAPT 10x"
