"""`+experiment=pretrain`: an encoder adapted to text, judged by held-out text, and kept."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import AutoModelForMaskedLM

from tartan.methods.module import TaskMixing
from tartan.runs.prepare import enabled_stages, prepare
from tartan.runs.result import read_result
from tartan.runs.run import run_experiment
from tests.in_process import config_of, recorded_run, toy
from tests.methods.test_resume import Killed, assert_same_run, kill_at  # noqa: F401


@pytest.fixture(scope="module")
def options(data_dir, cache_dir):
    return [
        "+experiment=pretrain",
        "encoder=tiny",
        f"auxiliary.dapt.path={data_dir}/corpus.txt",
        f"cache_dir={cache_dir}",
        "task.max_length=32",
        "task.share=0.2",
        "max_steps=12",
        "method.stages.adapt.batch_size=16",
        "method.stages.adapt.evaluate_every=4",
        "trainer.enable_progress_bar=false",
        "trainer.precision=32-true",
    ]


@pytest.fixture(scope="module")
def run(options, tmp_path_factory):
    return recorded_run(options, tmp_path_factory.mktemp("pretrained"))


def perplexity_of(folder, config):
    """Held-out perplexity by Transformers' own model, a text at a time."""
    prepared = prepare(config, enabled_stages(config))
    (_, examples), *_ = prepared.auxiliaries.values()
    collate = examples.objective.collate(
        prepared.encoder, 1, training=False, mask_seed=prepared.held_out.seed
    )
    model = AutoModelForMaskedLM.from_pretrained(folder).eval().double()
    losses = []
    for row in examples.held_out:
        (part,) = collate([row], None).micro_batches
        with torch.no_grad():
            logits = model(part.inputs["input_ids"], part.inputs["attention_mask"]).logits
        chosen = logits.flatten(0, 1)[part.inputs["positions"]]
        losses.append(
            torch.nn.functional.cross_entropy(chosen, part.inputs["targets"], reduction="none")
        )
    return math.exp(torch.cat(losses).mean())


def test_the_folder_is_transformers_model_with_the_perplexity_that_the_result_names(run, options):
    reached = run.result["dev"]["whole"]["metrics"]["perplexity"]
    assert perplexity_of(run.folder / "encoder", config_of(options)) == pytest.approx(
        reached, rel=1e-4
    )
    assert f"{reached:.3f}" in (run.folder / "encoder" / "README.md").read_text()


def test_the_best_evaluation_is_kept(run):
    (stage,) = run.result["stages"]
    assert [step for step, _ in stage["evaluations"]] == [4, 8, 12]
    assert run.result["dev"]["whole"]["metrics"]["perplexity"] == min(
        value for _, value in stage["evaluations"]
    )
    assert stage["best_step"] == min(stage["evaluations"], key=lambda pair: pair[1])[0]
    assert run.result["metric"] == "perplexity"
    assert "test" not in run.result
    # a search maximises
    assert read_result(run.folder).merit == -run.result["dev"]["whole"]["metrics"]["perplexity"]


def test_training_lowers_the_perplexity_and_patience_ends_it(options, tmp_path):
    rate = "method.stages.adapt.optimisation.body_lr"
    # without a learning rate nothing gets better, so that two evaluations without end it
    result = run_experiment(
        config_of([*options, f"{rate}=0.0", "method.stages.adapt.patience=1"]), tmp_path / "still"
    ).as_json()
    assert result["stages"][0]["steps"] == 8
    start = result["dev"]["whole"]["metrics"]["perplexity"]
    folder = str(tmp_path / "learned")
    learned = run_experiment(config_of([*options, f"{rate}=5e-3"]), folder).as_json()
    assert learned["dev"]["whole"]["metrics"]["perplexity"] < 0.8 * start


def test_a_run_that_is_killed_goes_on_to_the_same_encoder(run, options, tmp_path, kill_at):  # noqa: F811
    kill_at(TaskMixing, "training_step", (4, 11))
    config = config_of([*options, "checkpoint_minutes=0"])
    for _ in range(2):
        with pytest.raises(Killed):
            run_experiment(config, tmp_path / "run")
    run_experiment(config, tmp_path / "run")
    assert_same_run(tmp_path / "run", run.folder)
    weights = [f / "encoder" / "model.safetensors" for f in (tmp_path / "run", run.folder)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_task_trains_on_from_it_with_its_masked_lm_head(options, data_dir, cache_dir, tmp_path):
    longer = ["max_steps=150", "method.stages.adapt.evaluate_every=75"]
    changes = [*longer, "method.stages.adapt.optimisation.body_lr=5e-3"]
    result = run_experiment(config_of([*options, *changes]), tmp_path).as_json()
    fresh = toy(data_dir, cache_dir, "mt_tartan", "max_steps=1", "auxiliary=dapt")
    fresh.append(f"auxiliary.dapt.path={data_dir}/corpus.txt")
    adapted = [*fresh, "encoder=huggingface", f"encoder.name={tmp_path}/encoder"]
    losses = {}
    for name, changes in (("adapted", adapted), ("fresh", fresh)):
        module = recorded_run(changes, tmp_path / name).modules["joint"]
        losses[name] = float(module.last_record.losses[-1])
    assert losses["fresh"] > 5  # of the vocabulary's 6.9 nats
    # dropout is on while training, and off where the perplexity is measured
    assert losses["adapted"] < result["dev"]["whole"]["metrics"]["loss"] + 1
