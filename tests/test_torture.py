"""A real process, killed at random moments and started again with the same command.

The short version is part of the suite; `make torture` kills a run of a real encoder 30 times.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.conftest import ROOT

MOMENTS = ("at any time", "while a file is being written", "around an evaluation")
PATIENCE = 120
"""Seconds to wait for a moment that may not come."""


class Tortured:
    """A command whose process is killed; `runs/` lies in `folder`."""

    def __init__(self, options: list[str], folder: Path, threads: int, evaluate_every: int) -> None:
        self.options, self.folder, self.threads = options, folder, threads
        self.evaluate_every = evaluate_every

    def start(self) -> subprocess.Popen[str]:
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(self.threads),
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "src.run", *self.options, f"hydra.run.dir={self.folder}"],
            cwd=self.folder.parent, env=environment, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def finish(self) -> None:
        process = self.start()
        _, errors = process.communicate(timeout=1200)
        assert process.returncode == 0, errors

    def steps(self) -> int:
        log = self.folder / "steps.csv"
        lines = log.read_text().splitlines() if log.exists() else []
        return int(lines[-1].split(",")[1]) if len(lines) > 1 and lines[-1].count(",") > 1 else 0

    def kill(self, moment: str, rng: random.Random, longest: float) -> bool:
        """Start it and kill it at such a moment; False if it had finished before."""
        begun, process = self.steps(), self.start()
        assert process.stderr is not None
        if moment == "at any time":
            self._wait(process, lambda: False, rng.uniform(0, longest))
        elif moment == "while a file is being written":
            skipped = rng.randrange(1, 6)
            for _ in range(skipped):
                seen = set(self.folder.rglob("*.part"))
                self._wait(process, lambda s=seen: self._being_written(s), PATIENCE)
        else:
            self._wait(
                process,
                lambda: self.steps() > begun and self.steps() % self.evaluate_every == 0,
                PATIENCE,
            )
            self._wait(process, lambda: False, rng.uniform(0, 0.5))
        finished = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert not finished or process.returncode == 0, errors
        return not finished

    def _being_written(self, before: set[Path]) -> bool:
        return any(path not in before for path in self.folder.rglob("*.part"))

    def _wait(self, process, reached, seconds: float) -> None:
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end and not reached():
            time.sleep(0.002)

    def digests(self) -> dict[str, str]:
        """What has to be the same: parameters, the result without its timings, the step log."""
        parameters = hashlib.sha256()
        for name, value in sorted(load_file(self.folder / "classifier/model.safetensors").items()):
            parameters.update(name.encode() + value.numpy().tobytes())
        result = json.loads((self.folder / "result.json").read_text())
        for part in (result, *result["stages"]):
            del part["measured"]
        return {
            "parameters": parameters.hexdigest(),
            "result": json.dumps(result, sort_keys=True),
            "steps": hashlib.sha256((self.folder / "steps.csv").read_bytes()).hexdigest(),
        }


def torture(
    options: list[str], folder: Path, kills: int, threads: int, evaluate_every: int, seed: int
) -> None:
    undisturbed = Tortured(options, folder / "undisturbed", threads, evaluate_every)
    started = time.monotonic()
    undisturbed.finish()
    longest = time.monotonic() - started
    expected, rng, done, attempt = undisturbed.digests(), random.Random(seed), 0, 0
    victim = Tortured(options, folder / "victim-0", threads, evaluate_every)
    begun_again = 0
    while done < kills:
        moment = MOMENTS[done % len(MOMENTS)]
        if victim.kill(moment, rng, longest):
            done += 1
            print(f"killed {done:2} of {kills} {moment}, in step {victim.steps()}", flush=True)
            continue
        # it was through before the moment came: judge it, and begin another
        assert victim.digests() == expected
        begun_again += 1
        attempt += 1
        assert begun_again <= 3 * kills
        victim = Tortured(options, folder / f"victim-{attempt}", threads, evaluate_every)
    victim.finish()
    assert victim.digests() == expected
    print(f"{done} kills, {attempt + 1} runs, all as the undisturbed one", flush=True)


def test_three_kills_change_nothing(toy_options, data_dir, tmp_path):
    options = [
        *toy_options,
        "method=meta_tartan",
        "auxiliary=dapt_tapt",
        f"auxiliary.dapt.path={data_dir}/corpus.txt",
        "method.stages.joint.batch_size=8",
        "method.stages.joint.evaluate_every=5",
        "max_steps=40",
        "checkpoint_minutes=0",
    ]
    torture(options, tmp_path, kills=3, threads=1, evaluate_every=5, seed=0)


@pytest.mark.slow
def test_thirty_kills_of_a_real_encoder_change_nothing(tmp_path):
    options = [
        "+experiment=quickstart",
        "max_steps=18",
        "method.stages.joint.evaluate_every=6",
        "method.stages.last_finetune.enabled=true",
        "method.stages.last_finetune.max_steps=6",
        "method.stages.last_finetune.evaluate_every=3",
        "checkpoint_minutes=0",
        f"cache_dir={tmp_path}/cache",
        "trainer.enable_progress_bar=false",
    ]
    torture(options, tmp_path, kills=30, threads=2, evaluate_every=6, seed=0)
