"""Resume points under a Trainer of one's own."""

from __future__ import annotations

import signal

import lightning.pytorch as pl
import pytest

from tartan.methods import FineTuning
from tartan.methods.checkpoint import (
    DurableCheckpointIO,
    Interrupted,
    StageCheckpoints,
    newest_point,
    points,
)
from tests.in_process import same
from tests.methods.lightning import EPOCH, fitted, state_of, toy_data, trainer

pytestmark = pytest.mark.slow
LENGTH = {"max_epochs": 2}


class InterruptedAt(pl.Callback):
    """Raises SIGINT, as Ctrl-C does, in a step."""

    def __init__(self, step):
        self.step = step

    def on_train_batch_start(self, trainer, pl_module, batch, *_):
        if batch.step == self.step:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def made(data_dir, cache_dir):
    def make():
        data = toy_data(data_dir, cache_dir)
        return FineTuning.for_data(data, lr=2e-3), data

    return make


def test_ctrl_c_ends_a_training_which_goes_on_with_equal_bits(made, tmp_path):
    module, data = made()
    undisturbed = fitted(module, data, tmp_path / "undisturbed", **LENGTH)
    first, data = made()
    resuming = StageCheckpoints(tmp_path, 60, EPOCH, module.monitor)
    callbacks = [InterruptedAt(EPOCH + 1), resuming]
    durable = {"plugins": [DurableCheckpointIO()], **LENGTH}
    with pytest.raises(Interrupted) as ended:
        fitted(first, data, tmp_path / "first", callbacks=callbacks, **durable)
    assert ended.value.code == 128 + signal.SIGINT
    assert [int(point.stem) for point in points(tmp_path / "resume")] == [EPOCH + 2]
    again, data = made()
    point = newest_point(tmp_path / "resume")
    seen = fitted(again, data, tmp_path / "again", ckpt_path=point, **LENGTH)
    assert seen.steps == undisturbed.steps[EPOCH + 2 :]
    assert same(state_of(module), state_of(again))


def test_the_best_weights_are_those_that_lightning_tests(made, tmp_path):
    module, data = made()
    best = StageCheckpoints(tmp_path / "best", 60, EPOCH, module.monitor)
    assert best.best_model_path == ""
    running = trainer(
        tmp_path, max_epochs=3, callbacks=[best], plugins=[DurableCheckpointIO()],
    )  # fmt: skip
    running.fit(module, datamodule=data)
    step, scores = best.best()
    assert best.best_model_path == str(best.file(step))
    (tested,) = running.validate(module, datamodule=data, ckpt_path="best", verbose=False)
    assert tested["dev/macro_f1"] == pytest.approx(scores["macro_f1"], abs=1e-6)
