"""The Trainer's contract: each option is honoured, or refused by its name."""

from __future__ import annotations

import warnings
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from lightning.pytorch.callbacks import (
    BackboneFinetuning,
    BatchSizeFinder,
    EarlyStopping,
    EMAWeightAveraging,
    GradientAccumulationScheduler,
    LearningRateFinder,
    LearningRateMonitor,
    ModelCheckpoint,
    SpikeDetection,
    StochasticWeightAveraging,
)
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
from lightning.pytorch.tuner import Tuner
from lightning.pytorch.utilities.model_summary import ModelSummary
from torch.nn import Linear, Sequential
from torch.utils.data import DataLoader
from torchmetrics.classification import MulticlassAccuracy

from tartan import TartanData
from tartan.core.meta_head import MetaHeadSettings
from tartan.core.weighting.base import Needs
from tartan.core.weighting.fixed import Uniform
from tartan.core.weighting.loss_based import DWA
from tartan.core.weighting.meta import Meta, MetaExamples
from tartan.errors import UserError
from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan
from tartan.methods.best_weights import BestWeights
from tartan.methods.cost import CostMeter
from tartan.methods.factor_log import FactorLog
from tartan.methods.history import EvaluationHistory
from tartan.methods.optimisation import Optimisation
from tartan.methods.step_log import StepLog
from tartan.methods.trainer_options import keep_best
from tartan.objectives.composed.objective import Composed
from tartan.objectives.composed.output import SentenceOrder
from tartan.objectives.composed.representation import Bidirectional
from tartan.objectives.composed.transform import Unchanged
from tests.in_process import same
from tests.methods.lightning import EPOCH, fitted, state_of, toy_data, trainer

pytestmark = pytest.mark.slow


class Bare(Uniform):
    def __init__(self) -> None:
        super().__init__(["end_task"])


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


@pytest.mark.parametrize("options", [{}, {"max_epochs": -1}, {"max_time": "00:01:00:00"}], ids=str)
def test_a_training_without_a_length_is_refused_with_both_options_named(
    module, data, tmp_path, options
):
    with pytest.raises(UserError, match=r"max_steps=N or max_epochs=N"):
        trainer(tmp_path, **options).fit(module, datamodule=data)


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"accumulate_grad_batches": 2}, r"TartanData\(.*sizes=.*micro_batch_size"),
        ({"gradient_clip_val": 1.0}, "clip_norm"),
        ({"precision": "bf16-true"}, "weights in 16 bits are not supported.*bf16-mixed"),
        ({"strategy": "ddp", "devices": 2}, "devices=1, .*ReplicaStrategy"),
        ({"devices": 2}, "devices=1, .*ReplicaStrategy"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused_with_what_to_use(
    module, data, tmp_path, options, instead, monkeypatch
):
    # Lightning starts the other processes first: here they would run the tests once more, and take
    # this process with them when they end
    monkeypatch.setattr(_SubprocessScriptLauncher, "_call_children_scripts", lambda self: None)
    (option, _), *_ = options.items()
    before = state_of(module)
    with pytest.raises(UserError, match=rf"(?s)Trainer\(.*{option}=.*{instead}"):
        trainer(tmp_path, max_steps=2, **options).fit(module, datamodule=data)
    assert same(before, state_of(module))


def test_pre_training_that_is_not_evaluated_has_no_metric_to_monitor(data, tmp_path):
    module = ContinuedPretraining.for_data(data, lr=1e-3)
    stop = EarlyStopping("loss/dapt_epoch")
    with pytest.raises(UserError, match="no metric 'loss/dapt_epoch'"):
        trainer(tmp_path, max_steps=2, callbacks=[stop]).fit(module, datamodule=data)


@pytest.mark.parametrize(
    ("callback", "said"),
    [
        (EarlyStopping("dev/macrof1"), "dev/macro_f1"),
        (ModelCheckpoint(monitor="val_loss"), "no metric 'val_loss'"),
        (GradientAccumulationScheduler({0: 2}), "GradientAccumulationScheduler does not work"),
        (LearningRateFinder(), r"LearningRateFinder does not work here: .*for_data\(lr="),
        (BatchSizeFinder(), r"BatchSizeFinder does not work here: .*TartanData\(batch_size="),
        (BackboneFinetuning(), "BaseFinetuning does not work here: parameter groups are fixed"),
        (EarlyStopping("dev/macro_f1"), 'higher is better; give it mode="max"'),
        (ModelCheckpoint(monitor="dev_macro_f1"), r"ModelCheckpoint\(monitor='dev_macro_f1'\)"),
        (ModelCheckpoint(monitor="dev/micro_f1"), r"monitor='dev/micro_f1'\): higher is better"),
        (EarlyStopping("dev/loss", mode="max"), 'lower is better; give it mode="min"'),
        (EarlyStopping("loss/end_task", mode="max"), 'lower is better; give it mode="min"'),
        (
            ModelCheckpoint(train_time_interval=timedelta(seconds=1)),
            r"train_time_interval=\.\.\.\): .*every_n_train_steps=.*ResumePoints",
        ),
    ],
)
def test_a_callback_that_cannot_work_is_refused_before_the_training(
    module, data, tmp_path, callback, said
):
    with pytest.raises(UserError, match=said):
        trainer(tmp_path, max_steps=2, callbacks=[callback]).fit(module, datamodule=data)


@pytest.mark.parametrize("precision", ["16-true", "bf16-true"])
def test_weights_are_not_rounded_for_an_evaluation(module, data, tmp_path, precision):
    with pytest.raises(UserError, match=rf"{precision}.* own weights to 16 bits.* use .*16-mixed"):
        trainer(tmp_path, precision=precision).predict(module, datamodule=data)


def test_options_of_training_do_not_matter_to_evaluations(module, data, tmp_path):
    options = {"accumulate_grad_batches": 4, "gradient_clip_val": 1.0}
    (scores,) = trainer(tmp_path, **options).test(module, datamodule=data, verbose=False)
    assert scores == trainer(tmp_path).test(module, datamodule=data, verbose=False)[0]


def test_a_trainer_that_has_trained_trains_on_from_a_checkpoint_only(module, data, tmp_path):
    used = trainer(tmp_path, max_steps=2, enable_checkpointing=False)
    used.fit(module, datamodule=data)
    used.save_checkpoint(tmp_path / "two.ckpt")
    used.fit_loop.epoch_loop.max_steps = 4
    with pytest.raises(UserError, match=r"this Trainer has taken 2 steps .* make a new Trainer"):
        used.fit(module, datamodule=data)
    used.fit(module, datamodule=data, ckpt_path=tmp_path / "two.ckpt", weights_only=True)
    assert used.global_step == 4


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


def test_a_module_that_torch_has_compiled_is_refused_with_what_works(module, data, tmp_path):
    with pytest.raises(UserError, match=r"in place: module\.body\.compile\(\).*\"packed\": False"):
        trainer(tmp_path, max_steps=1).fit(torch.compile(module), datamodule=data)


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


def test_packed_texts_are_for_models_of_transformers(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = FineTuning.for_data(data, lr=1e-3)
    module.body = Sequential(module.body)
    with pytest.raises(UserError, match=r"a Sequential cannot read packed .*\"packed\": False"):
        trainer(tmp_path, max_steps=1).fit(module, datamodule=data)


def test_loggers_get_the_sizes_of_batches(module, data, tmp_path):
    trainer(tmp_path, max_steps=1, logger=CSVLogger(tmp_path)).fit(module, datamodule=data)
    (file,) = tmp_path.rglob("hparams.yaml")
    assert yaml.safe_load(file.read_text())["data"]["batch_size"] == 8


def test_arguments_are_printed_without_the_tokenizers_files(module):
    assert len(repr(module.hparams)) < 3000
    assert "FineTuning" not in repr(module.hparams)
    assert "tiny" in repr(module.hparams)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (
            lambda data: MetaTartan.for_data(data, lr=1, metrics=["accuracy"]),
            "metrics must name each",
        ),
        (lambda data: MTTartan.for_data(data, lr=1, weighting=Bare), "has to take task_names"),
    ],
)
def test_a_mistake_in_a_program_is_one_line(data, act, said):
    with pytest.raises(UserError, match=said):
        act(data)


def test_callbacks_may_follow_what_others_log(module, data, tmp_path):
    class Other(pl.Callback):
        def on_validation_epoch_end(self, trainer, pl_module):
            pl_module.log("dev/mine", 1.0)

    for stop in (
        EarlyStopping("dev/mine"),
        EarlyStopping("dev/loss"),
        EarlyStopping("dev_macro_f1", mode="max"),
    ):
        others = [Other()] if stop.monitor == "dev/mine" else []
        options = {"max_steps": 1, "callbacks": [stop, *others], "enable_checkpointing": False}
        trainer(tmp_path, **options).fit(module, datamodule=data)


def test_a_training_without_an_evaluation_has_no_best(module, data, tmp_path):
    history = EvaluationHistory(module.monitor)
    options = {"max_steps": 2, "limit_val_batches": 0, "callbacks": [history]}
    trainer(tmp_path, **options).fit(module, datamodule=data)
    with pytest.raises(UserError, match="before any evaluation"):
        history.best()


def test_names_of_files_are_enough_for_callbacks(module, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    history = EvaluationHistory(module.monitor)
    callbacks = [StepLog("new/steps.csv", "a", 5), history, BestWeights("best", history)]
    options = {"max_steps": 2, "callbacks": callbacks}
    trainer(tmp_path, **options).fit(module, datamodule=data)
    assert Path("new/steps.csv").is_file()
    assert list(Path("best").glob("best-*.ckpt"))


@pytest.mark.parametrize("column", [np.array, pd.Series, tuple], ids=["array", "pandas", "tuple"])
def test_a_column_of_texts_is_read_as_a_list(column, module):
    texts = ["one text", "another one"]
    module.eval()
    assert module(column(texts)).equal(module(texts))


def test_no_texts_have_no_logits(module):
    assert module([]).shape == (0, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sizes": {"micro_batch": 8}}, r"sizes\.micro_batch: "),
        ({"sizes": {"batch_size": 8}}, "batch_size is an argument by itself"),
        ({"sizes": {"packed": 3}}, r"sizes\.packed: "),
        ({"metric": "f1"}, "^metric=f1 is not one of the metrics"),
    ],
)
def test_the_data_s_arguments_are_named_as_a_program_has_them(data_dir, cache_dir, given, said):
    with pytest.raises(UserError, match=said):
        toy_data(data_dir, cache_dir, **given)


def test_a_data_module_around_the_data_is_told_what_works(module, data, tmp_path):
    class Around(pl.LightningDataModule):
        def train_dataloader(self):
            return data.train_dataloader()

    with pytest.raises(UserError, match="subclass may override val_dataloader"):
        trainer(tmp_path, max_epochs=-1, max_steps=1).fit(module, datamodule=Around())
    fitted(module, data, tmp_path, max_steps=1, enable_checkpointing=False)
    with pytest.raises(UserError, match="a DataModule around it has none"):  # of the last Trainer
        trainer(tmp_path, max_epochs=-1, max_steps=1).fit(module, datamodule=Around())


@pytest.mark.parametrize("tune", [Tuner.lr_find, Tuner.scale_batch_size])
def test_the_tuner_is_told_where_rates_and_sizes_are(module, data, tmp_path, tune):
    module.lr, data.batch_size = 1e-3, 8
    running = trainer(tmp_path, max_steps=1)
    with pytest.raises(UserError, match="Finder does not work here"):
        tune(Tuner(running), module, datamodule=data)


def test_a_schedule_that_needs_a_metric_is_refused(data, tmp_path):
    class Plateau(FineTuning):
        def configure_optimizers(self):
            found = super().configure_optimizers()
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(found["optimizer"])
            return {**found, "lr_scheduler": {"scheduler": plateau, "monitor": "dev/loss"}}

    with pytest.raises(UserError, match="ReduceLROnPlateau needs a metric"):
        fitted(Plateau.for_data(data, lr=2e-3), data, tmp_path, max_steps=1)


def test_an_optimiser_that_computes_gradients_itself_is_refused(data, tmp_path):
    class Quasi(FineTuning):
        def new_optimiser(self):
            return torch.optim.LBFGS(self.parameters())

    with pytest.raises(UserError, match=r"new_optimiser\(\) of Quasi returns LBFGS"):
        fitted(Quasi.for_data(data, lr=2e-3), data, tmp_path, max_steps=1)


def test_a_schedule_is_stepped_after_every_step_and_takes_no_frequency(data, tmp_path):
    class Sometimes(FineTuning):
        def configure_optimizers(self):
            found = super().configure_optimizers()
            return {**found, "lr_scheduler": {"scheduler": found["lr_scheduler"], "frequency": 2}}

    with pytest.raises(UserError, match="so that it takes no frequency"):
        fitted(Sometimes.for_data(data, lr=2e-3), data, tmp_path, max_steps=1)


def test_the_rate_of_averaged_weights_changes_once_an_epoch(module, data, tmp_path):
    averaging = StochasticWeightAveraging(1e-3, swa_epoch_start=1, annealing_epochs=2)
    options = {"max_epochs": 4, "enable_checkpointing": False}
    seen = fitted(module, data, tmp_path, callbacks=[averaging], **options)
    epochs = [set(seen.rates[EPOCH * n : EPOCH * (n + 1)]) for n in range(1, 4)]
    assert [len(rates) for rates in epochs] == [1, 1, 1]
    assert epochs[2].pop() == pytest.approx(1e-3)


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


def test_a_module_trains_with_dropout_whatever_an_earlier_one_was_set_to(module, data):
    module.eval()
    later = FineTuning.for_data(data, lr=2e-3)
    assert later.training
    assert all(part.training for part in later.body.modules())


def test_a_checkpoint_is_tested_without_asking_for_callbacks(module, data, tmp_path):
    kept = ModelCheckpoint(tmp_path, save_last=True)
    fitted(module, data, tmp_path, max_steps=1, callbacks=[kept])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trainer(tmp_path).test(module, datamodule=data, ckpt_path=kept.last_model_path)
    assert not [w for w in told if "callbacks" in str(w.message)]


def test_a_graph_of_the_module_is_refused(module, data, tmp_path):
    logger = TensorBoardLogger(tmp_path, log_graph=True)
    with pytest.raises(UserError, match="omit log_graph"):
        fitted(module, data, tmp_path, max_steps=1, logger=logger)


def test_a_callback_cannot_follow_a_task_that_is_only_sampled(data, tmp_path):
    module = MTTartan.for_data(data, lr=2e-3, sampled=1)
    with pytest.raises(UserError, match="no metric 'loss/tapt'"):
        trainer(tmp_path, max_steps=1, callbacks=[EarlyStopping("loss/tapt")]).fit(
            module, datamodule=data
        )


def test_nor_the_weight_of_the_only_task_which_is_never_logged(data, tmp_path):
    module = FineTuning.for_data(data, lr=2e-3)
    callbacks = [EarlyStopping("weight/end_task")]
    with pytest.raises(UserError, match="no metric 'weight/end_task'"):
        trainer(tmp_path, max_steps=1, callbacks=callbacks).fit(module, datamodule=data)


def test_a_method_without_its_data_is_told_what_to_pass(data):
    with pytest.raises(UserError, match=r"MetaTartan\.for_data takes a TartanData, got list"):
        MetaTartan.for_data([{"text": "a", "label": "b"}], lr=1e-3)
    told = r"unexpected .* 'heds'"
    with pytest.raises(TypeError, match=told):
        MetaTartan.for_data(data, lr=1e-3, heds={})
    with pytest.raises(TypeError, match=r"^MTTartan\(\): missing a required argument: 'encoder'"):
        MTTartan()


class OfTwoBatches(Uniform):
    needs = Needs(second_batches=True)


@pytest.mark.parametrize(
    ("kind", "own"), [(MetaTartan, {}), (MTTartan, {"weighting": OfTwoBatches})]
)
def test_a_body_that_is_not_trained_has_no_gradients_to_weigh_by(kind, own, data, tmp_path):
    module = kind.for_data(data, lr=2e-3, **own)
    module.body.requires_grad_(False)
    with pytest.raises(UserError, match="no parameter of the body is trained"):
        fitted(module, data, tmp_path, max_steps=1)


def test_of_sampled_tasks_only_the_end_task_is_logged(data, tmp_path):
    for kind, logged in (
        (MTTartan, ["loss/end_task", "weight/end_task"]),
        (ContinuedPretraining, []),
    ):
        module = kind.for_data(data, lr=2e-3, sampled=1)
        running = trainer(tmp_path, max_steps=3, enable_checkpointing=False)
        running.fit(module, datamodule=data)
        found = [name for name in running.callback_metrics if name.startswith(("loss", "weight"))]
        assert sorted(found) == logged


def test_dev_is_evaluated_where_the_trainer_says(module, data, tmp_path):
    options = {"enable_checkpointing": False, "limit_val_batches": 1}
    seen = fitted(module, data, tmp_path, max_epochs=2, val_check_interval=2, **options)
    assert seen.evaluated == [2, 4, 6, 8, 10, 12]
    module = FineTuning.for_data(data, lr=2e-3)
    options["check_val_every_n_epoch"] = None
    seen = fitted(module, data, tmp_path, max_steps=10, val_check_interval=4, **options)
    assert seen.evaluated == [4, 8, 10]


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


class Counted(pl.Callback):
    """How many examples each kind of evaluation has seen."""

    def __init__(self):
        self.seen = Counter()

    def on_validation_batch_end(self, trainer, module, outputs, batch, *_):
        self.seen["validate"] += batch.examples

    def on_test_batch_end(self, trainer, module, outputs, batch, *_):
        self.seen["test"] += batch.examples

    def on_predict_batch_end(self, trainer, module, outputs, batch, *_):
        self.seen["predict"] += len(outputs["label"])


@pytest.mark.parametrize(
    ("limit", "dev", "test"), [(None, 22, 31), (1, 8, 8), (2, 16, 16), (0.5, 8, 16)]
)
def test_evaluations_are_as_long_as_their_limits(data_dir, cache_dir, tmp_path, limit, dev, test):
    """Of 22 examples of dev and 31 of test, 8 at once."""
    data = toy_data(data_dir, cache_dir, sizes={"evaluation_batch_size": 8})
    module = FineTuning.for_data(data, lr=2e-3)
    limits = {f"limit_{split}_batches": limit for split in ("val", "test", "predict")}
    counted = Counted()
    running = trainer(tmp_path, callbacks=[counted], **limits)
    running.validate(module, datamodule=data, verbose=False)
    running.test(module, datamodule=data, verbose=False)
    running.predict(module, datamodule=data)
    assert counted.seen == {"validate": dev, "test": test, "predict": test}


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


def test_the_accelerator_is_the_trainers(module, data, tmp_path):
    with pytest.raises(ValueError, match="accelerator"):
        pl.Trainer(accelerator="abacus")
    running = trainer(tmp_path, max_steps=1, enable_checkpointing=False)
    running.fit(module, datamodule=data)
    assert module.device == running.strategy.root_device == torch.device("cpu")


def test_the_summary_has_sizes_of_an_example(module):
    """What Lightning calls `example_input_array` is what `forward` takes."""
    (inputs,) = module.example_input_array
    module.eval()
    assert torch.equal(module(inputs), module("an example"))
    summary = ModelSummary(module, max_depth=-1)
    sizes = dict(zip(summary.layer_names, summary.out_sizes, strict=True))
    assert sizes["heads.end_task"] == [1, len(module.labels)]


def test_evaluations_and_their_limits_do_not_change_training(data_dir, cache_dir, tmp_path):
    ends = []
    for options in (
        {},
        {"val_check_interval": 2, "limit_val_batches": 1, "num_sanity_val_steps": 0},
    ):
        data = toy_data(data_dir, cache_dir)
        module = MetaTartan.for_data(data, lr=2e-3)
        fitted(module, data, tmp_path, max_steps=8, enable_checkpointing=False, **options)
        ends.append(state_of(module))
    assert same(*ends)


def test_overfit_batches_repeats_the_first_ones(module, data, tmp_path):
    options = {"overfit_batches": 2, "enable_checkpointing": False}
    seen = fitted(module, data, tmp_path, max_epochs=3, **options)
    assert seen.steps == [0, 1, 0, 1, 0, 1]


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


def test_early_stopping_on_dev_ends_a_training(module, data, tmp_path):
    never = EarlyStopping("dev/macro_f1", mode="max", patience=1, min_delta=2.0)
    seen = fitted(module, data, tmp_path, max_epochs=5, callbacks=[never])
    assert seen.evaluated == [EPOCH, 2 * EPOCH]
    assert len(seen.steps) == 2 * EPOCH


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


def test_a_users_checkpoint_callback_is_left_as_it_is(module, data, tmp_path):
    own = ModelCheckpoint(tmp_path / "own", monitor="dev/loss", mode="min", filename="{step}")
    running = trainer(tmp_path, max_steps=2, callbacks=[own])
    running.fit(module, datamodule=data)
    assert [c for c in running.callbacks if isinstance(c, ModelCheckpoint)] == [own]
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["step=2.ckpt"]


@pytest.mark.parametrize(
    "own",
    [
        {"every_n_train_steps": 1}, {"save_on_exception": True}, {"save_top_k": -1},
        {"save_on_train_epoch_end": True}, {"mode": "max"}, {"every_n_epochs": 2},
    ],
    ids=str,
)  # fmt: skip
def test_a_checkpoint_callback_that_says_what_to_keep_is_the_users(module, tmp_path, own):
    kept = ModelCheckpoint(**own)
    keep_best(trainer(tmp_path, callbacks=[kept]), module.monitor)
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


def test_a_users_checkpoint_callback_without_options_gets_the_metric(module, data, tmp_path):
    own = ModelCheckpoint()
    running = trainer(tmp_path, max_steps=2, callbacks=[own])
    running.fit(module, datamodule=data)
    assert [c for c in running.callbacks if isinstance(c, ModelCheckpoint)] == [own]
    assert (own.monitor, own.mode) == ("dev/macro_f1", "max")
    assert own.best_model_path.endswith("step=2.ckpt")


def test_a_callback_of_two_trainings_keeps_the_best_by_the_next_data_s_metric(
    data_dir, cache_dir, module, data, tmp_path
):
    own = ModelCheckpoint()
    running = trainer(tmp_path, max_steps=1, callbacks=[own])
    other = toy_data(data_dir, cache_dir, metric="accuracy")
    running.fit(FineTuning.for_data(other, lr=2e-3), datamodule=other)
    assert own.monitor == "dev/accuracy"
    trainer(tmp_path, max_steps=2, callbacks=[own]).fit(module, datamodule=data)
    assert own.monitor == "dev/macro_f1"
    assert own.best_model_path


@pytest.mark.parametrize("monitor", ["step", "epoch"])
def test_the_last_checkpoints_can_be_kept(module, data, tmp_path, monitor):
    kept = ModelCheckpoint(monitor=monitor, mode="max", save_top_k=2)
    trainer(tmp_path, max_steps=2, callbacks=[kept]).fit(module, datamodule=data)
    assert kept.best_model_path


def test_further_metrics_are_beside_the_usual_ones(data, tmp_path):
    two = {"_target_": "torchmetrics.classification.MulticlassAccuracy", "top_k": 2}
    module = FineTuning.for_data(data, lr=2e-3, metrics={"top2": two})
    (scores,) = trainer(tmp_path).validate(module, datamodule=data, verbose=False)
    assert {"dev/top2", "dev/macro_f1", "dev/micro_f1", "dev/weighted_f1"} <= set(scores)
    module = FineTuning.for_data(data, lr=2e-3, metrics={"micro_f1": None})
    (scores,) = trainer(tmp_path).validate(module, datamodule=data, verbose=False)
    assert {"dev/macro_f1", "dev/weighted_f1"} <= set(scores)
    assert "dev/micro_f1" not in scores


def test_several_loaders_are_predicted_and_evaluated_one_at_a_time(module, tmp_path):
    loaders = [DataLoader(["a", "b"], batch_size=2), DataLoader(["c"])]
    first, second = trainer(tmp_path).predict(module, loaders)
    assert [len(part["label"]) for part in (*first, *second)] == [2, 1]
    loaders = [DataLoader([{"text": "a", "label": "A"}])] * 2
    with pytest.raises(UserError, match="one loader at a time"):
        trainer(tmp_path).test(module, loaders, verbose=False)


def test_an_evaluation_before_the_training_does_not_change_which_checkpoint_is_kept(
    module, data, tmp_path
):
    running = trainer(tmp_path, max_steps=EPOCH)
    running.validate(module, datamodule=data, verbose=False)
    running.fit(module, datamodule=data)
    (kept,) = (c for c in running.callbacks if isinstance(c, ModelCheckpoint))
    assert kept.monitor == "dev/macro_f1"
    assert kept.best_model_path


def test_an_evaluation_after_the_training_is_none_of_it(module, data, tmp_path):
    history = EvaluationHistory(module.monitor)
    meter, best = CostMeter(), BestWeights(tmp_path / "best", history)
    factors = FactorLog(tmp_path / "factors.csv", "joint")
    running = trainer(tmp_path, max_steps=3, callbacks=[history, best, meter, factors])
    running.fit(module, datamodule=data)
    before = (list(history.evaluations), best.best_model_path, meter.cost().tokens_per_second)
    running.validate(module, datamodule=data, verbose=False)
    assert (history.evaluations, best.best_model_path, meter.cost().tokens_per_second) == before


def test_the_peak_memory_is_kept_for_a_stage_that_is_interrupted(module, data, tmp_path):
    meter, kept = CostMeter(), []

    class Interrupted(pl.Callback):
        def on_train_batch_end(self, *_):
            kept.append(meter.state_dict())

    trainer(tmp_path, max_steps=2, callbacks=[meter, Interrupted()]).fit(module, datamodule=data)
    resumed = CostMeter()
    resumed.load_state_dict(kept[-1])
    assert 2**20 < resumed.cost().peak_memory_bytes <= meter.cost().peak_memory_bytes


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


@pytest.mark.parametrize(
    ("weighting", "sampled", "said"),
    [
        (partial(DWA, window=2), 1, "weighting DWA follows every task"),
        (Uniform, 5, "sampled=5 is more than the stage's auxiliary tasks, of which there are 2"),
    ],
)
def test_sampling_that_a_weighting_does_not_allow_is_refused(data, weighting, sampled, said):
    with pytest.raises(UserError, match=said):
        MTTartan.for_data(data, lr=2e-3, weighting=weighting, sampled=sampled)


def test_tasks_that_are_sampled_have_an_example_each(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir, batch_size=1)
    module = MTTartan.for_data(data, lr=2e-3, sampled=2)
    with pytest.raises(
        UserError, match=r"^sampled=2 tasks cannot share a batch of 1; use a larger"
    ):
        trainer(tmp_path, max_steps=1).fit(module, datamodule=data)


def test_callbacks_get_a_steps_weighted_loss(data, tmp_path):
    class Read(pl.Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, *_):
            record = pl_module.last_record
            expected = (record.losses * record.weights).sum()
            seen.append(outputs["loss"].item() == expected.item())

    seen: list[bool] = []
    callbacks = [Read(), SpikeDetection(warmup=1)]
    fitted(MetaTartan.for_data(data, lr=2e-3), data, tmp_path, max_steps=3, callbacks=callbacks)
    assert seen == [True] * 3


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


def test_a_masked_lm_head_is_kept_whichever_task_it_is_of(data_dir, cache_dir, tmp_path):
    """Of several, the first; other heads are none from which a task starts."""
    order = Composed(Unchanged(), Bidirectional(), SentenceOrder())
    texts = [f"some words and others, {number} and then more of them" for number in range(20)]
    auxiliaries = {"order": (order, texts), "a": texts, "b": texts}
    data = toy_data(data_dir, cache_dir, auxiliaries=auxiliaries)
    module = ContinuedPretraining.for_data(data, lr=2e-3)
    assert list(module.heads) == ["order", "a", "b"]
    fitted(module, data, tmp_path, max_steps=1)
    assert data.prepared.encoder.mlm_head is module.heads["a"]


def test_numbers_that_are_not_finite_end_a_training_under_a_plain_trainer(data, tmp_path):
    module = FineTuning.for_data(data, lr=2e-3)
    module.heads["end_task"].out.weight.data.fill_(float("nan"))
    with pytest.raises(UserError, match="not finite"):
        fitted(module, data, tmp_path, max_steps=20, num_sanity_val_steps=0)


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        (FineTuning, {}, "give a learning rate"),
        (FineTuning, {"lr": 1e-3, "optimisation": Optimisation()}, "give a learning rate"),
        (FineTuning, {"head_lr": 1e-3, "optimisation": Optimisation()}, "end_head_lr"),
        (ContinuedPretraining, {"lr": 1e-3, "head_lr": 1e-3}, "trains no end task's head"),
        (MTTartan, {"lr": 1e-3, "meta_head": MetaHeadSettings()}, "MTTartan has no meta head"),
        (
            MetaTartan,
            {"lr": 1e-3, "meta_head": MetaHeadSettings(), "weighting": Uniform},
            "weighting Uniform needs no meta-gradient: omit meta_head",
        ),
        (FineTuning, {"lr": 1e-3, "tasks": ["tapt"]}, "trains no auxiliary tasks: omit tasks"),
        (FineTuning, {"lr": 1e-3, "weighting": Meta}, "trains no auxiliary tasks: omit weighting"),
        (FineTuning, {"lr": 1e-3, "heads": {"end_taks": Linear(2, 2)}}, "heads has 'end_taks'"),
        (
            FineTuning,
            {"lr": 1e-3, "heads": {"end_task": Linear(2, 2)}},
            r"heads\['end_task'\] does",
        ),
        (FineTuning, {"lr": 1e-3, "metrics": {"a": MulticlassAccuracy(3)}}, r"metrics\['a'\] must"),
        (MTTartan, {"lr": 1e-3, "weighting": Meta}, "weighting Meta learns .*; use MetaTartan"),
        (MTTartan, {"lr": 1e-3, "eta": 0.1}, "MTTartan learns no task weights: omit eta"),
        (FineTuning, {"lr": 1e-3, "eta": 0.1}, "FineTuning learns no task weights: omit eta"),
        (MetaTartan, {"lr": 1e-3, "eta": 0.1, "weighting": Meta}, "give one of them, eta or weig"),
        (MetaTartan, {"lr": 1e-3, "eta": -0.1}, "eta must be"),
    ],
)
def test_an_argument_without_effect_is_refused(data, method, options, said):
    with pytest.raises(UserError, match=said):
        method.for_data(data, **options)


def test_eta_is_that_of_the_usual_weighting_of_a_subclass_too(data):
    class ByExample(MetaTartan):
        usual_weighting = MetaExamples

    module = ByExample.for_data(data, lr=1e-3, eta=0.2)
    assert (type(module.weighting), module.weighting.eta) == (MetaExamples, 0.2)
    assert MetaTartan.for_data(data, lr=1e-3, eta=0.2).weighting.eta == 0.2


def test_the_constructor_has_the_methods_usual_weighting_and_meta_head(data):
    prepared = data.prepared
    tasks = {name: prepared.objective(name) for name in ("end_task", "tapt")}
    module = MetaTartan(prepared.encoder, tasks, labels=prepared.end_task.labels)
    assert type(module.weighting) is Meta
    assert module.meta_head.settings == MetaHeadSettings()
    usual = MetaTartan.for_data(data, lr=1e-3, tasks=["tapt"])
    assert module.hparams["weighting"] == usual.hparams["weighting"]
    assert module.hparams["meta_head"] == usual.hparams["meta_head"]
    with pytest.raises(UserError, match=r"Meta learns .* which is not among the tasks tapt$"):
        MetaTartan(prepared.encoder, {"tapt": tasks["tapt"]})
    with pytest.raises(UserError, match=r"^MTTartan: tasks is empty"):
        MTTartan(prepared.encoder, {})


def test_a_checkpoint_of_an_earlier_version_may_hold_a_meta_head_that_is_not_used(data, tmp_path):
    module = MetaTartan.for_data(data, lr=1e-3, weighting=Uniform)
    running = trainer(tmp_path, max_steps=1, enable_checkpointing=False)
    running.fit(module, datamodule=data)
    running.save_checkpoint(tmp_path / "now.ckpt")
    checkpoint = torch.load(tmp_path / "now.ckpt", weights_only=True)
    assert checkpoint["hyper_parameters"]["meta_head"] is None
    checkpoint["hyper_parameters"]["meta_head"] = vars(MetaHeadSettings())
    torch.save(checkpoint, tmp_path / "earlier.ckpt")
    assert MetaTartan.load_from_checkpoint(tmp_path / "earlier.ckpt").meta_head is None


def test_heads_of_an_earlier_module_are_continued_whatever_else_it_has(data):
    earlier = MTTartan.for_data(data, lr=1e-3)
    module = FineTuning.for_data(data, lr=1e-3, heads=earlier.heads)
    assert module.heads["end_task"] is earlier.heads["end_task"]
