"""Hooks that a subclass overrides in vain are named, and those that lack the module's own."""

from __future__ import annotations

import lightning.pytorch as pl
import pytest
import torch

from tartan.errors import UserError
from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan
from tartan.methods.subclass_hooks import (
    NEED_SUPER,
    NEVER_CALLED,
    remarks_on_callback,
    remarks_on_hooks,
)
from tests.methods.lightning import fitted, toy_data, trainer


class Mixin:
    def on_after_backward(self):
        raise AssertionError("never called")


class Every(Mixin, FineTuning):
    """Overrides all hooks that a step could call, and notes which are called."""

    def on_before_backward(self, loss):
        raise AssertionError("never called")

    def on_before_zero_grad(self, optimizer):
        raise AssertionError("never called")

    def optimizer_zero_grad(self, *args):
        raise AssertionError("never called")

    def optimizer_step(self, *args, **kwargs):
        raise AssertionError("never called")

    def lr_scheduler_step(self, *args):
        raise AssertionError("never called")

    def configure_gradient_clipping(self, *args, **kwargs):
        raise AssertionError("never called")

    def backward(self, *args, **kwargs):
        raise AssertionError("never called")

    def on_before_optimizer_step(self, optimizer):
        self.seen = [p.grad is not None for p in self.body.parameters()]

    def on_train_batch_start(self, batch, batch_idx):
        self.started = True


class Careless(MTTartan):
    def on_train_batch_end(self, outputs, batch, batch_idx):
        pass

    def on_save_checkpoint(self, checkpoint):
        checkpoint["mine"] = 1

    def configure_callbacks(self):
        return []


class Careful(MTTartan):
    def on_save_checkpoint(self, checkpoint):
        super().on_save_checkpoint(checkpoint)
        checkpoint["mine"] = 1

    def setup(self, stage):
        MTTartan.setup(self, stage)


class WithoutSchedule(FineTuning):
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class WithoutPlan(FineTuning):
    def configure_optimizers(self):
        optimiser = torch.optim.SGD(self.parameters(), lr=0.1)
        return {"optimizer": optimiser, "lr_scheduler": self.optimisation.schedule(optimiser, 9)}


class OwnStep(MTTartan):
    """Trains as with automatic optimisation, which takes no step here."""

    def training_step(self, batch, batch_idx):
        return self(["a text"]).sum()


class OtherOptimiser(FineTuning):
    kind: type

    def new_optimiser(self):
        return self.kind(self.parameters(), lr=0.05)


def test_what_is_never_called_is_said_and_never_called(data_dir, cache_dir, tmp_path, caplog):
    data = toy_data(data_dir, cache_dir)
    module = Every.for_data(data, lr=1e-3)
    for name in NEVER_CALLED:
        owner = "Mixin" if name == "on_after_backward" else "Every"
        assert f"{owner}.{name} is never called" in caplog.text
    fitted(module, data, tmp_path, max_steps=1)
    assert any(module.seen)
    assert module.started


def test_hooks_that_lack_the_modules_own_are_named():
    found = [sentence.split(" ")[0] for sentence in remarks_on_hooks(Careless)]
    assert found == [
        "Careless.configure_callbacks", "Careless.on_train_batch_end",
        "Careless.on_save_checkpoint",
    ]  # fmt: skip
    assert not list(remarks_on_hooks(Careful))
    assert not list(remarks_on_hooks(MTTartan))


def test_the_modules_own_are_those_that_are_listed():
    hooks = {name for kind in (pl.LightningModule, *pl.LightningModule.__mro__)
             for name in vars(kind)
             if name.startswith(("on_", "configure_")) or name.endswith("_step")}  # fmt: skip
    own = {
        name
        for method in (ContinuedPretraining, FineTuning, MTTartan, MetaTartan)
        for kind in method.__mro__
        if kind.__module__.startswith("tartan.")
        for name in vars(kind)
    }
    assert hooks & own | {"setup"} == {*NEED_SUPER, "predict_step"}


def test_a_hook_of_one_method_alone_is_missed_in_that_method_only(caplog):
    class Pretraining(ContinuedPretraining):
        def on_fit_end(self):
            pass

    class Tuning(FineTuning):
        def on_fit_end(self):
            pass

    (remark,) = remarks_on_hooks(Pretraining)
    assert remark.startswith("Pretraining.on_fit_end does not call super().on_fit_end()")
    assert not list(remarks_on_hooks(Tuning))


def test_a_checkpoint_without_the_modules_entries_says_which_hook_lacks_super(
    data_dir, cache_dir, tmp_path
):
    data = toy_data(data_dir, cache_dir)
    module = Careless.for_data(data, lr=1e-3)
    running = trainer(tmp_path, max_steps=1)
    running.fit(module, datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    with pytest.raises(UserError, match=r"has to call super\(\)\.on_save_checkpoint"):
        Careless.load_from_checkpoint(tmp_path / "here.ckpt")


@pytest.mark.parametrize("kind", [WithoutSchedule, WithoutPlan])
def test_an_optimiser_without_its_schedule_is_refused(kind, data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = kind.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match=r"one optimiser with its schedule.*new_optimiser\(\)"):
        fitted(module, data, tmp_path, max_steps=1)


@pytest.mark.parametrize("length", [{"max_steps": 3}, {"max_epochs": 2}])
def test_a_step_of_ones_own_that_steps_no_optimiser_ends_the_training(
    length, data_dir, cache_dir, tmp_path, caplog
):
    data = toy_data(data_dir, cache_dir)
    module = OwnStep.for_data(data, lr=1e-3)
    assert "OwnStep.training_step does not call super().training_step()" in caplog.text
    with pytest.raises(UserError, match=r"training_step of OwnStep took no step .* super\(\)"):
        trainer(tmp_path, **length).fit(module, datamodule=data)


def test_a_frozen_module_is_refused(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = FineTuning.for_data(data, lr=1e-3)
    module.freeze()
    with pytest.raises(UserError, match=r"no parameter is to be trained.*unfreeze\(\)"):
        trainer(tmp_path, max_steps=2).fit(module, datamodule=data)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.RMSprop])
def test_another_optimiser_is_one_method(kind, data_dir, cache_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(OtherOptimiser, "kind", kind, raising=False)
    data = toy_data(data_dir, cache_dir)
    module = OtherOptimiser.for_data(data, lr=1e-3)
    before = {name: value.clone() for name, value in module.named_parameters()}
    rates = fitted(module, data, tmp_path, max_steps=3).rates
    assert len(set(rates)) > 1
    trained = [name for name, _ in module.named_parameters() if not name.startswith("meta_head")]
    moved = {name for name in trained if not module.get_parameter(name).equal(before[name])}
    assert {name.partition(".")[0] for name in moved} == {"body", "heads"}


class HeadsOnly(FineTuning):
    def new_optimiser(self):
        return torch.optim.SGD(self.heads.parameters(), lr=1e-3)


class Unfreezing(pl.Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        pl_module.body.requires_grad_(trainer.current_epoch > 0)


def test_what_is_trained_is_in_the_optimiser(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = HeadsOnly.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match=r"body\..* is to be trained, but the optimiser does not"):
        fitted(module, data, tmp_path, max_steps=1)
    module.body.requires_grad_(False)
    fitted(module, data, tmp_path, max_steps=1)
    later = FineTuning.for_data(data, lr=1e-3)
    later.body.requires_grad_(False)
    with pytest.raises(UserError, match="what is unfrozen later is in no optimiser"):
        fitted(later, data, tmp_path, max_epochs=2, callbacks=[Unfreezing()])


def test_hooks_of_callbacks_that_are_never_called_are_named():
    class Gradients(pl.Callback):
        def on_after_backward(self, trainer, pl_module):
            raise AssertionError("never called")

        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            pass

    (remark,) = remarks_on_callback(Gradients())
    assert remark.startswith("Gradients.on_after_backward is never called")
    assert "on_before_optimizer_step is called" in remark
    inline = pl.callbacks.LambdaCallback(on_after_backward=print, on_train_end=print)
    (remark,) = remarks_on_callback(inline)
    assert remark.startswith("LambdaCallback.on_after_backward is never called")
    assert not list(remarks_on_callback(pl.callbacks.LearningRateMonitor()))
    assert not list(remarks_on_callback(pl.Callback()))
