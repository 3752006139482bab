"""Resume points under a Trainer of one's own."""

from __future__ import annotations

import signal

import lightning.pytorch as pl
import pytest

from src.methods import FineTuning
from src.methods.checkpoint_io import DurableCheckpointIO
from src.methods.resume_points import Interrupted, ResumePoints, newest_point, points
from tests.in_process import same
from tests.methods.lightning import EPOCH, fitted, state_of, toy_data

pytestmark = pytest.mark.slow
LENGTHS = [{"max_epochs": 2}, {"max_steps": 2 * EPOCH}]


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


@pytest.mark.parametrize("length", LENGTHS, ids=str)
def test_ctrl_c_ends_a_training_of_steps_or_epochs_which_goes_on_with_equal_bits(
    made, tmp_path, length
):
    module, data = made()
    undisturbed = fitted(module, data, tmp_path / "undisturbed", **length)
    first, data = made()
    callbacks = [InterruptedAt(EPOCH + 1), ResumePoints(tmp_path / "points", 60, EPOCH)]
    durable = {"plugins": [DurableCheckpointIO()], **length}
    with pytest.raises(Interrupted) as ended:
        fitted(first, data, tmp_path / "first", callbacks=callbacks, **durable)
    assert ended.value.code == 128 + signal.SIGINT
    assert [int(point.stem) for point in points(tmp_path / "points")] == [EPOCH + 2]
    again, data = made()
    point = newest_point(tmp_path / "points")
    seen = fitted(again, data, tmp_path / "again", ckpt_path=point, **length)
    assert seen.steps == undisturbed.steps[EPOCH + 2 :]
    assert same(state_of(module), state_of(again))


@pytest.mark.parametrize("length", LENGTHS, ids=str)
def test_points_are_written_in_time_but_not_after_the_last_step(made, tmp_path, length):
    module, data = made()
    fitted(module, data, tmp_path, callbacks=[ResumePoints(tmp_path / "p", 0, EPOCH)], **length)
    written = [int(point.stem) for point in points(tmp_path / "p")]
    assert written == [2 * EPOCH - 2, 2 * EPOCH - 1]
