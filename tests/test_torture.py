"""A real process, killed at random moments and started again with the same command.

Between two starts a file of its folder may be damaged: the run ends as if undisturbed, or says in
one line what to remove. The short version is part of the suite; `make torture` kills three kinds of
runs 100 times.
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
DAMAGED = (".ckpt", ".sha256", ".csv", ".json", ".yaml")
"""Endings of the files that are damaged."""
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

    def finish(self) -> str:
        """Start it and wait for its end: `finished` or `refused`."""
        process = self.start()
        _, errors = process.communicate(timeout=1200)
        return self._ended(process, errors)

    def _ended(self, process: subprocess.Popen[str], errors: str) -> str:
        if process.returncode == 0:
            return "finished"
        told = [line for line in errors.splitlines() if line.startswith("error:")]
        assert process.returncode == 1, errors
        assert len(told) == 1, errors
        assert "Traceback" not in errors, errors
        assert "resume=false" in told[0] or "remove" in told[0], errors
        return "refused"

    def steps(self) -> int:
        log = self.folder / "steps.csv"
        lines = log.read_text().splitlines() if log.exists() else []
        return int(lines[-1].split(",")[1]) if len(lines) > 1 and lines[-1].count(",") > 1 else 0

    def kill(self, moment: str, rng: random.Random, longest: float) -> str:
        """Start it and kill it at such a moment: `killed`, or before it `finished` or `refused`."""
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
        return self._ended(process, errors) if finished else "killed"

    def damage(self, rng: random.Random) -> str:
        """Change a bit of a file, or cut it, as a disk might; returns what was done."""
        files = sorted(
            path
            for path in self.folder.rglob("*")
            if path.suffix in DAMAGED
            and path.is_file()
            and path.stat().st_size
            # what loggers and Hydra wrote is read by nobody
            and not {"logs", ".hydra"} & set(path.relative_to(self.folder).parts)
        )
        if not files:
            return "nothing to damage"
        path = rng.choice(files)
        content = path.read_bytes()
        at = rng.randrange(len(content))
        if rng.random() < 0.5:
            path.write_bytes(content[:at])
            return f"cut {path.relative_to(self.folder)} at {at}"
        path.write_bytes(
            content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        )
        return f"changed a bit of {path.relative_to(self.folder)} at {at}"

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
    options: list[str],
    folder: Path,
    kills: int,
    threads: int,
    evaluate_every: int,
    seed: int,
    damages: float,
) -> None:
    """Kill runs and damage their files, the latter before a share `damages` of the starts."""
    undisturbed = Tortured(options, folder / "undisturbed", threads, evaluate_every)
    started = time.monotonic()
    assert undisturbed.finish() == "finished"
    longest = time.monotonic() - started
    expected, rng, done, attempt = undisturbed.digests(), random.Random(seed), 0, 0
    damaged = False
    victim = Tortured(options, folder / "victim-0", threads, evaluate_every)
    begun_again = 0
    while done < kills:
        moment = MOMENTS[done % len(MOMENTS)]
        ended = victim.kill(moment, rng, longest)
        if ended == "killed":
            done += 1
            print(f"killed {done:2} of {kills} {moment}, in step {victim.steps()}", flush=True)
            if rng.random() < damages:
                print(victim.damage(rng), flush=True)
                damaged = True
            continue
        # it was through before the moment came: judge it, and begin another
        assert damaged if ended == "refused" else victim.digests() == expected
        print(ended, flush=True)
        damaged = False
        begun_again += 1
        attempt += 1
        assert begun_again <= 3 * kills
        victim = Tortured(options, folder / f"victim-{attempt}", threads, evaluate_every)
    assert damaged if victim.finish() == "refused" else victim.digests() == expected
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
    torture(options, tmp_path, kills=3, threads=1, evaluate_every=5, seed=0, damages=0)


@pytest.mark.slow
def test_forty_kills_of_a_real_encoder_change_nothing(tmp_path):
    options = [
        "+experiment=quickstart",
        "max_steps=18",
        "method.stages.joint.evaluate_every=6",
        "method.stages.joint.meta_head.fresh=false",
        "method.stages.last_finetune.enabled=true",
        "method.stages.last_finetune.max_steps=6",
        "method.stages.last_finetune.evaluate_every=3",
        "checkpoint_minutes=0",
        f"cache_dir={tmp_path}/cache",
        "trainer.enable_progress_bar=false",
    ]
    torture(options, tmp_path, kills=40, threads=2, evaluate_every=6, seed=0, damages=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["method=dapt_tapt", "auxiliary=dapt_tapt"],
        ["method=meta_tartan", "auxiliary=dapt_tapt", "trainer=ddp", "trainer.devices=2"],
    ],
    ids=["three stages", "two processes"],
)
def test_thirty_kills_of_other_runs_change_nothing(options, toy_options, data_dir, tmp_path):
    options = [
        *toy_options,
        *options,
        f"auxiliary.dapt.path={data_dir}/corpus.txt",
        "max_steps=30",
        "checkpoint_minutes=0",
    ]
    torture(options, tmp_path, kills=30, threads=1, evaluate_every=5, seed=1, damages=0.3)
