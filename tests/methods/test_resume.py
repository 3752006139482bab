"""A run that is stopped and started again is the run that was never stopped, bit for bit."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from itertools import count

import pytest
import torch

import tartan.runs.run
from tartan.errors import UserError
from tartan.methods.checkpoint import DurableCheckpointIO, Interrupted, points
from tartan.methods.module import TaskMixing
from tests.in_process import config_of, toy

pytestmark = pytest.mark.slow

EVERY_STEP = "checkpoint_minutes=0"
CHAINS = {
    "meta_tartan": [
        "method.stages.joint.evaluate_every=3",
        "method.stages.joint.patience=null",
        "method.stages.joint.meta_head.fresh=false",
        "method.stages.head_warmup.enabled=true",
        "method.stages.head_warmup.batch_size=8",
        "method.stages.last_finetune.enabled=true",
        "method.stages.last_finetune.batch_size=8",
    ],
    "dapt_tapt": ["method.stages.finetune.evaluate_every=2", "method.stages.finetune.patience=2"],
}
"""Options of chains of three stages; the parts that have a memory are in."""


class Killed(BaseException):
    """As if the process had ended here: nothing of ours handles it."""


def options_of(method, data_dir, cache_dir):
    return toy(data_dir, cache_dir, method, "max_steps=8", EVERY_STEP, *CHAINS[method])


def run(options, folder):
    return tartan.runs.run.run_experiment(config_of(options), folder).as_json()


def without_timings(result):
    copied = json.loads(json.dumps(result))
    for part in (copied, *copied["stages"]):
        del part["measured"]
    return copied


def tensors_of(folder):
    """Every kept weight of every stage, and the classifier."""
    found = {}
    for path in sorted(folder.glob("checkpoints/*/*.ckpt")):
        state = torch.load(path, weights_only=True)["state_dict"]
        found |= {f"{path.relative_to(folder)} {name}": value for name, value in state.items()}
    return found


def assert_same_run(folder, expected_folder):
    ours, theirs = tensors_of(folder), tensors_of(expected_folder)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert (folder / "steps.csv").read_bytes() == (expected_folder / "steps.csv").read_bytes()
    results = [json.loads((f / "result.json").read_text()) for f in (folder, expected_folder)]
    assert without_timings(results[0]) == without_timings(results[1])


@pytest.fixture(scope="module")
def undisturbed(data_dir, cache_dir, tmp_path_factory):
    """The folder of a run that nothing stopped, by method."""
    known = {}

    def call(method):
        if method not in known:
            known[method] = tmp_path_factory.mktemp(method)
            run(options_of(method, data_dir, cache_dir), known[method])
        return known[method]

    return call


def die():
    raise Killed


@pytest.fixture
def kill_at(monkeypatch):
    """Die, or do as is given, at the given calls (counted over the whole run) of a method."""

    def call(owner, name, moments, act=die):
        original, calls = getattr(owner, name), count(1)

        def watched(self, *args, **kwargs):
            if next(calls) in moments:
                act()
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    return call


def run_until_done(options, folder):
    """Run again and again, as a user would; returns how often it died."""
    for deaths in range(50):
        try:
            run(options, folder)
        except Killed:
            continue
        return deaths
    raise AssertionError("never finished")


@pytest.mark.parametrize("method", CHAINS)
def test_wherever_it_dies_the_same_command_gives_the_same_run(
    method, undisturbed, kill_at, data_dir, cache_dir, tmp_path
):
    expected = undisturbed(method)
    kill_at(TaskMixing, "training_step", [2, 8, 20])
    kill_at(TaskMixing, "validation_step", [2])
    kill_at(TaskMixing, "test_step", [1])
    kill_at(DurableCheckpointIO, "save_checkpoint", [1, 6, 15, 22])
    assert run_until_done(options_of(method, data_dir, cache_dir), tmp_path) >= 8
    assert_same_run(tmp_path, expected)


def test_a_signal_ends_the_run_after_the_step_with_a_checkpoint(
    undisturbed, kill_at, data_dir, cache_dir, tmp_path
):
    """Without any other checkpoint: the default is one in five minutes."""
    expected, signum = undisturbed("meta_tartan"), signal.SIGTERM
    options = [*options_of("meta_tartan", data_dir, cache_dir), "checkpoint_minutes=5"]
    # 4 and 11: no evaluation follows; 12 - 1 is the third of joint
    kill_at(TaskMixing, "training_step", (4, 11, 12), partial(signal.raise_signal, signum))
    before = signal.getsignal(signum)
    codes = []
    for _ in range(4):
        try:
            run(options, tmp_path)
        except Interrupted as stop:
            codes.append(stop.code)
            assert signal.getsignal(signum) == before
    assert codes == [128 + signum] * 3
    assert_same_run(tmp_path, expected)


def test_slurms_requeue_writes_a_point_and_puts_the_job_back(
    undisturbed, kill_at, monkeypatch, data_dir, cache_dir, tmp_path
):
    """With Lightning's own handler, as in a SLURM job, and a `scontrol` that takes notes."""
    expected = undisturbed("meta_tartan")
    notes = tmp_path / "notes"
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.parent.mkdir()
    scontrol.write_text(f'#!/bin/sh\necho "$@" >> {notes}\n')
    scontrol.chmod(0o755)
    slurm = {
        "NTASKS": "1", "JOB_ID": "123", "JOB_NAME": "train", "PROCID": "0", "LOCALID": "0",
        "NODEID": "0", "NNODES": "1", "NODELIST": "localhost", "NTASKS_PER_NODE": "1",
    }  # fmt: skip
    for name, value in slurm.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("PATH", f"{scontrol.parent}:{os.environ['PATH']}")
    requeue = partial(signal.raise_signal, signal.SIGUSR1)
    kill_at(TaskMixing, "training_step", (12, 14), requeue)  # in the joint stage; one follows
    options = [*options_of("meta_tartan", data_dir, cache_dir), "checkpoint_minutes=5"]
    folder, codes = tmp_path / "run", []
    for _ in range(3):
        try:
            run(options, folder)
        except Interrupted as stop:
            codes.append(stop.code)
            assert list((folder / "checkpoints" / "joint" / "slurm").glob("hpc_ckpt_*"))
    assert codes == [128 + signal.SIGUSR1] * 2
    assert notes.read_text().splitlines() == ["requeue 123"] * 2
    assert not list(folder.rglob("hpc_ckpt_*"))
    assert_same_run(folder, expected)


def test_a_torn_checkpoint_is_recognised_and_the_one_before_it_used(
    undisturbed, kill_at, data_dir, cache_dir, tmp_path, caplog
):
    expected = undisturbed("meta_tartan")
    options = options_of("meta_tartan", data_dir, cache_dir)
    kill_at(TaskMixing, "training_step", [14])
    with pytest.raises(Killed):
        run(options, tmp_path)
    folder = tmp_path / "checkpoints" / "joint" / "resume"
    older, newest = points(folder)  # two are kept, and none of a finished stage
    assert not (tmp_path / "checkpoints" / "head_warmup" / "resume").exists()
    newest.write_bytes(newest.read_bytes()[:-100])
    run(options, tmp_path)
    assert f"{newest} is incomplete or damaged" in caplog.text
    assert f"after step {int(older.stem)} of 8" in caplog.text
    assert_same_run(tmp_path, expected)


def test_best_weights_of_steps_that_are_taken_again_are_not_used(
    kill_at, data_dir, cache_dir, tmp_path
):
    """As where the repeated steps round differently: what was best after the point is another's."""
    options = options_of("meta_tartan", data_dir, cache_dir)
    kill_at(TaskMixing, "training_step", [15])
    with pytest.raises(Killed):
        run(options, tmp_path)
    folder = tmp_path / "checkpoints" / "joint"
    DurableCheckpointIO().save_checkpoint({"state_dict": {}}, folder / "best-00000008.ckpt")
    (folder / "best-00000007.ckpt").write_text("torn")
    run(options, tmp_path)
    assert not list(folder.glob("best-*.ckpt*"))


def test_a_finished_stage_is_not_trained_again_and_a_damaged_one_is_an_error(
    kill_at, monkeypatch, data_dir, cache_dir, tmp_path
):
    options = options_of("dapt_tapt", data_dir, cache_dir)
    kill_at(TaskMixing, "test_step", [1, 2])
    for _ in range(2):
        with pytest.raises(Killed):
            run(options, tmp_path)
        monkeypatch.setattr(TaskMixing, "training_step", None)
    path = tmp_path / "checkpoints" / "tapt" / "last.ckpt"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"tapt/last\.ckpt .* is damaged"):
        run(options, tmp_path)
    path.with_name("outcome.json").write_text("[" * 100_000)  # as a stranger may write it
    with pytest.raises(UserError, match=r"tapt holds no stage .* remove") as caught:
        run(options, tmp_path)
    assert "\n" not in str(caught.value)


class Requeued(SystemExit):
    """What submitit's handler raises once the job is in the queue again."""


def test_preemption_writes_a_point_before_the_job_goes_back_to_its_queue(
    monkeypatch, data_dir, cache_dir, tmp_path
):
    """SLURM's SIGTERM announces it; submitit's own signal comes next, in the same step here."""
    requeued, step = [], TaskMixing.training_step

    def checkpoint_and_try_requeue(signum, frame):
        requeued.append(signum)
        raise Requeued(-1)

    def signalled(self, batch, index):
        if batch.step == 2 and not requeued:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGUSR2)
        return step(self, batch, index)

    def run(folder):
        config = config_of(toy(data_dir, cache_dir, "finetune"))
        return tartan.runs.run.run_experiment(config, folder).as_json()

    undisturbed = run(tmp_path / "undisturbed")
    monkeypatch.setattr(TaskMixing, "training_step", signalled)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    monkeypatch.delenv("SUBMITIT_PREEMPT_SIGNAL", raising=False)
    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda signum, frame: None),
        signal.SIGUSR2: signal.signal(signal.SIGUSR2, checkpoint_and_try_requeue),
    }
    try:
        with pytest.raises(Requeued):
            run(tmp_path / "run")
        written = points(tmp_path / "run" / "checkpoints" / "finetune" / "resume")
        assert [int(point.stem) for point in written] == [3]
        result = run(tmp_path / "run")
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    assert requeued == [signal.SIGUSR2]
    assert result["dev"] == undisturbed["dev"]
    assert result["stages"][0]["evaluations"] == undisturbed["stages"][0]["evaluations"]
