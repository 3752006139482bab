"""The Trainer's options are honoured."""

from __future__ import annotations

import warnings
from pathlib import Path

import lightning.pytorch as pl
import pytest
import torch
import yaml
from lightning.pytorch.callbacks import (
    EMAWeightAveraging,
    LearningRateMonitor,
    ModelCheckpoint,
    StochasticWeightAveraging,
)
from lightning.pytorch.loggers import CSVLogger

from tartan import TartanData
from tartan.core.meta_head import MetaHeadSettings
from tartan.core.weighting.meta import Meta
from tartan.errors import UserError
from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan
from tartan.methods.best_weights import BestWeights, keep_best
from tartan.methods.cost import CostMeter
from tartan.methods.step_log import FactorLog, StepLog
from tests.in_process import same
from tests.methods.lightning import EPOCH, fitted, state_of, toy_data, trainer

pytestmark = pytest.mark.slow


@pytest.fixture
def data(data_dir, cache_dir) -> TartanData:
    return toy_data(data_dir, cache_dir)


@pytest.fixture
def module(data):
    return FineTuning.for_data(data, lr=2e-3)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_steps": 7}, 7),
        ({"max_epochs": 2}, 2 * EPOCH),
        ({"max_steps": 7, "max_epochs": 2}, 7),
        ({"max_steps": 70, "max_epochs": 1}, EPOCH),
        ({"max_epochs": 2, "limit_train_batches": 3}, 6),
        ({"max_epochs": 2, "limit_train_batches": 0.5}, 6),
        ({"fast_dev_run": 2}, 2),
    ],
    ids=str,
)
def test_the_schedule_is_as_long_as_the_training(module, data, tmp_path, options, steps):
    seen = fitted(module, data, tmp_path, enable_checkpointing=False, **options)
    assert seen.steps == list(range(steps))
    falling = [rate / 2e-3 for rate in seen.rates]
    expected = module.optimisation.schedule(module.new_optimiser(), steps).lr_lambdas[0]
    assert falling == pytest.approx([expected(step) for step in range(steps)])
    assert seen.evaluated[-1] == steps  # training ends with an evaluation


def test_the_program_s_own_draws_follow_its_own_seed(data, tmp_path):
    class Draw(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, *_):
            drawn.append(torch.rand(()).item())

    found = []
    for seed in (1, 2):
        drawn: list[float] = []
        torch.manual_seed(seed)
        options = {"max_steps": 2, "callbacks": [Draw()], "limit_val_batches": 0}
        module = MetaTartan.for_data(data, lr=1e-3)
        trainer(tmp_path, **options).fit(module, datamodule=data)
        found.append([*drawn, torch.rand(()).item()])
        assert len(set(found[-1])) == 3
    assert not set(found[0]) & set(found[1])


def test_checkpoints_of_a_body_that_was_compiled_in_place_can_be_loaded(
    data_dir, cache_dir, tmp_path
):
    found = []
    for compiled in (False, True):
        data = toy_data(data_dir, cache_dir, sizes={"packed": False})
        module = MetaTartan.for_data(data, lr=1e-3)
        if compiled:
            module.body.compile(backend="eager")
        running = trainer(tmp_path, max_steps=2, enable_checkpointing=False)
        running.fit(module, datamodule=data)
        running.save_checkpoint(tmp_path / "compiled.ckpt")
        again = MetaTartan.load_from_checkpoint(tmp_path / "compiled.ckpt")
        assert same(state_of(module), state_of(again))
        found.append(state_of(again))
    assert same(*found)


def test_averaged_weights_go_on_from_a_checkpoint(data_dir, cache_dir, tmp_path):
    """With equal bits at an epoch's end; Lightning has no schedule in an epoch that was cut."""

    def made(**more):
        data = toy_data(data_dir, cache_dir)
        module, averaging = (
            MetaTartan.for_data(data, lr=2e-3),
            StochasticWeightAveraging(1e-3, swa_epoch_start=1, annealing_epochs=3),
        )
        callbacks = [averaging, *more.pop("callbacks", [])]
        return module, fitted(module, data, tmp_path, max_epochs=4, callbacks=callbacks, **more)

    ends = {"every_n_epochs": 1, "save_on_train_epoch_end": True}
    points = [
        ModelCheckpoint(tmp_path / when, filename="{step}", save_top_k=-1, **how)
        for when, how in (("ends", ends), ("inside", {"every_n_train_steps": 2 * EPOCH + 2}))
    ]
    module, undisturbed = made(callbacks=points)
    for point in (tmp_path / "ends" / f"step={n * EPOCH}.ckpt" for n in (1, 2, 3)):
        again, seen = made(ckpt_path=point, enable_checkpointing=False)
        assert seen.rates == undisturbed.rates[-len(seen.rates) :]
        assert same(state_of(module), state_of(again))
    inside = tmp_path / "inside" / f"step={2 * EPOCH + 2}.ckpt"
    _, seen = made(ckpt_path=inside, enable_checkpointing=False)
    assert seen.steps == undisturbed.steps[2 * EPOCH + 2 :]


@pytest.mark.parametrize(
    ("options", "evaluated"),
    [
        ({"max_epochs": 2, "val_check_interval": 4}, [4, 10, 12]),
        ({"max_epochs": 2, "limit_train_batches": 3, "val_check_interval": 2}, [2, 5, 6]),
        ({"max_epochs": 3, "check_val_every_n_epoch": 2}, [2 * EPOCH]),
        ({"max_steps": 5, "val_check_interval": 0.5}, [3, 5]),
    ],
    ids=str,
)
def test_the_last_step_is_evaluated_unless_its_epoch_is_not(
    module, data, tmp_path, options, evaluated
):
    seen = fitted(module, data, tmp_path, enable_checkpointing=False, **options)
    assert seen.evaluated == evaluated


@pytest.mark.parametrize(
    ("precision", "parameters", "features"),
    [
        ("32-true", torch.float32, torch.float32),
        ("bf16-mixed", torch.float32, torch.bfloat16),
        ("64-true", torch.float64, torch.float64),
    ],
)
def test_training_is_in_the_precision_that_is_asked_for(
    module, data, tmp_path, precision, parameters, features
):
    assert module.encoder.supports_packing  # which a pass before training found out
    found = set()
    last = module.body.encoder.layer[-1].output.dense
    last.register_forward_hook(lambda layer, inputs, output: found.add(output.dtype))
    fitted(module, data, tmp_path, max_steps=2, precision=precision, enable_checkpointing=False)
    assert {parameter.dtype for parameter in module.parameters()} == {parameters}
    assert found == {features}


def test_what_looks_on_changes_nothing(data_dir, cache_dir, tmp_path):
    """Loggers, bars, summaries, profilers, checks: the parameters end with the same bits."""
    ends = []
    looking = {
        "logger": True, "enable_progress_bar": True, "enable_model_summary": True,
        "profiler": "simple", "detect_anomaly": True, "deterministic": True, "benchmark": True,
        "inference_mode": False, "enable_checkpointing": True, "log_every_n_steps": 1,
        "num_sanity_val_steps": 0, "use_distributed_sampler": False, "max_time": "01:00:00:00",
    }  # fmt: skip
    for options in ({"enable_checkpointing": False}, looking, {"barebones": True, "logger": None}):
        data = toy_data(data_dir, cache_dir)
        module = MetaTartan.for_data(data, lr=2e-3)
        fitted(module, data, tmp_path, max_steps=4, **options)
        ends.append(state_of(module))
    assert same(ends[0], ends[1])
    assert same(ends[0], ends[2])


def test_repeated_batches_go_on_inside_an_epoch_with_equal_bits(data_dir, cache_dir, tmp_path):
    def made(**more):
        data = toy_data(data_dir, cache_dir)
        module = FineTuning.for_data(data, lr=2e-3)
        return module, fitted(module, data, tmp_path, max_epochs=3, overfit_batches=3, **more)

    point = ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, every_n_train_steps=4)
    module, _ = made(callbacks=[point])
    again, seen = made(ckpt_path=tmp_path / "step=4.ckpt", enable_checkpointing=False)
    assert seen.steps == [1, 2, 0, 1, 2]
    assert same(state_of(module), state_of(again))


def test_model_checkpoint_keeps_the_best_on_dev_also_where_none_is_given(module, data, tmp_path):
    found = {}

    class Scores(pl.Callback):
        def on_validation_end(self, trainer, pl_module):
            if not trainer.sanity_checking:
                found[trainer.global_step] = float(trainer.callback_metrics["dev/macro_f1"])

    running = trainer(tmp_path, max_epochs=2, val_check_interval=2, callbacks=[Scores()])
    running.fit(module, datamodule=data)
    best = max(found, key=lambda step: (found[step], -step))
    (kept,) = (c for c in running.callbacks if isinstance(c, ModelCheckpoint))
    assert kept.best_model_path.endswith(f"step={best}.ckpt")
    last = state_of(module)
    (tested,) = running.validate(module, datamodule=data, ckpt_path="best", verbose=False)
    assert tested["dev/macro_f1"] == pytest.approx(found[best], abs=1e-6)
    stored = torch.load(kept.best_model_path, weights_only=True)["state_dict"]
    loaded = module.state_dict()
    assert all(value.equal(loaded[name]) for name, value in stored.items())
    assert best == max(found) or not same(last, state_of(module))


def test_weights_are_averaged_over_steps(module, data, tmp_path):
    seen = []

    class Weights(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, *_):
            seen.append({n: p.detach().clone() for n, p in pl_module.named_parameters()})

    ema = EMAWeightAveraging(decay=0.5)
    running = trainer(tmp_path, max_steps=3, callbacks=[Weights(), ema])
    running.fit(module, datamodule=data)
    by_hand = seen[0]
    for now in seen[1:]:
        by_hand = {name: 0.5 * (value + now[name]) for name, value in by_hand.items()}
    for name, value in module.named_parameters():
        torch.testing.assert_close(value, by_hand[name])


@pytest.mark.parametrize(
    "own",
    [
        {"every_n_train_steps": 1}, {"save_on_exception": True}, {"save_top_k": -1},
        {"save_on_train_epoch_end": True}, {"mode": "max"}, {"every_n_epochs": 2},
    ],
    ids=str,
)  # fmt: skip
def test_a_checkpoint_callback_that_says_what_to_keep_is_the_users(tmp_path, own):
    kept = ModelCheckpoint(**own)
    keep_best(trainer(tmp_path, callbacks=[kept]), "dev/macro_f1", "max")
    assert kept.monitor is None


@pytest.mark.parametrize(
    "own",
    [
        {"dirpath": "here"}, {"filename": "{step}"}, {"save_last": True}, {"verbose": True},
        {"auto_insert_metric_name": False}, {"enable_version_counter": False},
    ],
    ids=str,
)  # fmt: skip
def test_a_checkpoint_callback_that_says_where_to_keep_it_keeps_the_best(
    module, data, tmp_path, monkeypatch, own
):
    monkeypatch.chdir(tmp_path)
    kept = ModelCheckpoint(**own)
    running = trainer(tmp_path, max_steps=2, callbacks=[kept])
    running.fit(module, datamodule=data)
    assert [c for c in running.callbacks if isinstance(c, ModelCheckpoint)] == [kept]
    assert (kept.monitor, kept.mode) == ("dev/macro_f1", "max")
    assert Path(kept.best_model_path).is_file()
    if "dirpath" in own:
        assert Path(kept.best_model_path).parent == tmp_path / "here"


def test_further_metrics_are_beside_the_usual_ones(data, tmp_path):
    two = {"_target_": "torchmetrics.classification.MulticlassAccuracy", "top_k": 2}
    module = FineTuning.for_data(data, lr=2e-3, metrics={"top2": two})
    (scores,) = trainer(tmp_path).validate(module, datamodule=data, verbose=False)
    assert {"dev/top2", "dev/macro_f1", "dev/micro_f1", "dev/weighted_f1"} <= set(scores)
    module = FineTuning.for_data(data, lr=2e-3, metrics={"micro_f1": None})
    (scores,) = trainer(tmp_path).validate(module, datamodule=data, verbose=False)
    assert {"dev/macro_f1", "dev/weighted_f1"} <= set(scores)
    assert "dev/micro_f1" not in scores


def test_an_evaluation_after_the_training_is_none_of_it(module, data, tmp_path):
    meter, best = CostMeter(), BestWeights(tmp_path / "best", module.monitor)
    factors = FactorLog(tmp_path / "factors.csv", "joint")
    running = trainer(tmp_path, max_steps=3, callbacks=[best, meter, factors])
    running.fit(module, datamodule=data)
    before = (list(best.evaluations), best.best_model_path, meter.cost().tokens_per_second)
    running.validate(module, datamodule=data, verbose=False)
    assert (best.evaluations, best.best_model_path, meter.cost().tokens_per_second) == before


def test_a_module_sends_losses_again_under_a_trainer_without_a_log(data, tmp_path):
    module = MTTartan.for_data(data, lr=2e-3)
    fitted(module, data, tmp_path, max_steps=1, callbacks=[StepLog(tmp_path / "a.csv", "a", 5)])
    assert not module.logs_steps
    fitted(module, data, tmp_path, max_steps=1)
    assert module.logs_steps


def test_the_steps_before_a_failure_are_in_the_log(data, tmp_path):
    module = FineTuning.for_data(data, lr=2e-3)
    module.heads["end_task"].out.weight.data.fill_(float("nan"))
    log = StepLog(tmp_path / "steps.csv", "finetune", 50)
    options = {"max_steps": 20, "num_sanity_val_steps": 0, "callbacks": [log]}
    with pytest.raises(UserError, match="not finite"):
        fitted(module, data, tmp_path, **options)
    assert len((tmp_path / "steps.csv").read_text().splitlines()) == 1 + 5


def test_a_logger_gets_losses_weights_rates_and_dev_metrics(data, tmp_path):
    module = MTTartan.for_data(data, lr=2e-3)
    logger = CSVLogger(tmp_path)
    running = trainer(
        tmp_path, max_steps=4, log_every_n_steps=1, logger=logger,
        callbacks=[LearningRateMonitor()], enable_checkpointing=False,
    )  # fmt: skip
    running.fit(module, datamodule=data)
    header = (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").read_text().split("\n")[0]
    names = set(header.split(","))
    assert {"loss/end_task", "weight/tapt", "loss/dapt", "dev/macro_f1", "dev/loss"} <= names
    assert any(name.startswith("lr-AdamW") for name in names)
    logged = tmp_path / "lightning_logs" / "version_0" / "hparams.yaml"
    options = yaml.safe_load(logged.read_text(encoding="utf-8"))
    assert options["optimisation"]["body_lr"] == 2e-3
    assert options["encoder"] == data.prepared.encoder.name  # not its tokenizer's files
    assert module.task_weights == pytest.approx(dict.fromkeys(module.heads, 1 / 3))


def test_a_training_goes_on_from_lightnings_checkpoints_with_equal_bits(
    data_dir, cache_dir, tmp_path
):
    """In the middle of an epoch, before and after an evaluation there, and at an epoch's end."""

    def made():
        data = toy_data(data_dir, cache_dir)
        return MetaTartan.for_data(data, lr=2e-3), data

    often = {"max_epochs": 3, "val_check_interval": 4}
    module, data = made()
    points = [
        ModelCheckpoint(
            tmp_path / when, filename="{step}", save_top_k=-1, save_on_train_epoch_end=False, **how
        )
        for when, how in (("steps", {"every_n_train_steps": 2}), ("evaluations", {}))
    ]
    undisturbed = fitted(module, data, tmp_path, callbacks=points, **often)
    stops = [("steps", 4), ("steps", EPOCH), ("evaluations", 4), ("evaluations", 10)]
    for when, stop in stops:
        again, data = made()
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*dataloader is not resumable.*")
            point = tmp_path / when / f"step={stop}.ckpt"
            more = {"ckpt_path": point, "enable_checkpointing": False}
            seen = fitted(again, data, tmp_path, **often, **more)
        assert seen.steps == undisturbed.steps[stop:]
        assert seen.rates == undisturbed.rates[stop:]
        assert same(state_of(module), state_of(again))
        assert module.task_weights == again.task_weights


def test_pretraining_needs_no_dev_and_hands_its_head_on(data, tmp_path):
    module = ContinuedPretraining.for_data(data, lr=2e-3, tasks=["dapt"])
    seen = fitted(module, data, tmp_path, max_steps=3)
    assert (len(seen.steps), seen.evaluated) == (3, [])
    assert data.prepared.encoder.mlm_head is module.heads["dapt"]
    with pytest.raises(UserError, match="nothing to evaluate"):
        module(["a text"])


def test_the_constructor_has_the_methods_usual_weighting_and_meta_head(data):
    prepared = data.prepared
    tasks = {name: prepared.objective(name) for name in ("end_task", "tapt")}
    module = MetaTartan(prepared.encoder, tasks, labels=prepared.end_task.labels)
    assert type(module.weighting) is Meta
    assert module.meta_head.settings == MetaHeadSettings()
    usual = MetaTartan.for_data(data, lr=1e-3, tasks=["tapt"])
    assert module.hparams["weighting"] == usual.hparams["weighting"]
    assert module.hparams["meta_head"] == usual.hparams["meta_head"]
