"""Runs that are killed at random moments, their files damaged between two starts.

What is tortured ends as if undisturbed, or says in one line what to remove; where that is done, it
ends as if undisturbed too. A short version is part of the suite; `make torture` kills two kinds of
runs many times.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.programs import Started, started

KILLS = int(os.environ.get("KILLS", "30"))
DAMAGED = (".ckpt", ".csv", ".json", ".yaml")
"""Endings of a run's files that are damaged."""
ADVICE = re.compile(r"(?P<folder>(remove the|name another) folder)|remove (?P<path>\S+?)\b,? ")


class TorturedRun:
    """A run of `src.run` in a folder, in one process or, as torchrun starts them, in two."""

    def __init__(self, options: list[str], folder: Path, processes: int = 1) -> None:
        self.options, self.folder, self.processes = options, folder, processes

    def start(self) -> list[Started]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {
            "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "torture",
        }  # fmt: skip
        ranks = (
            [{}] if self.processes == 1 else [common | {"RANK": r, "LOCAL_RANK": r} for r in "01"]
        )
        options = [*self.options, f"hydra.run.dir={self.folder}"]
        return [
            started("src.run", *options, cwd=self.folder.parent, environment=rank) for rank in ranks
        ]

    def finish(self, running: list[Started] | None = None) -> str:
        """Wait for its end: `finished`, or the error that it ends with."""
        first, *others = running or self.start()
        done = first.wait()
        for other in others:
            other.kill()
            other.wait()
        errors = done.stderr.decode()
        if done.returncode == 0:
            return "finished"
        told = [line for line in errors.splitlines() if line.startswith("error:")]
        assert (done.returncode, len(told)) == (1, 1), errors
        assert "Traceback" not in errors, errors
        return told[0]

    def kill(self, rng: random.Random, longest: float) -> str | None:
        """Start it and kill it, half of the times while it writes; its end, if it came before."""
        running = self.start()
        if rng.random() < 0.5:
            wait_for(running, lambda: False, rng.uniform(0, longest))
        else:
            for _ in range(rng.randrange(1, 11)):
                now = self.being_written()
                wait_for(running, lambda now=now: self.being_written() != now, 120)
        if running[0].is_over():
            return self.finish(running)
        for process in rng.sample(running, len(running)):  # any may be the first to be gone
            process.kill()
        for process in running:
            process.wait()
        return None

    def being_written(self) -> frozenset[str]:
        """Files that are being written; unlike rglob, walk passes over what is gone meanwhile."""
        walked = os.walk(self.folder)
        return frozenset(f"{at}/{n}" for at, _, names in walked for n in names if ".part" in n)

    def damage(self, rng: random.Random) -> str:
        """Change a bit of a file, or cut it, as a disk might; returns what was done."""
        files = [
            path
            for path in sorted(self.folder.rglob("*"))
            if path.suffix in DAMAGED and path.is_file() and path.stat().st_size
            # what loggers and Hydra wrote is read by nobody
            and not {"logs", ".hydra"} & set(path.relative_to(self.folder).parts)
        ]  # fmt: skip
        if not files:
            return ""
        path = rng.choice(files)
        content = bytearray(path.read_bytes())
        at = rng.randrange(len(content))
        if rng.random() < 0.5:
            path.write_bytes(content[:at])
            return f"cut {path} at {at}"
        content[at] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        return f"changed a bit of {path} at {at}"

    def follow(self, error: str) -> None:
        """Do what an error asks for."""
        found = ADVICE.search(error)
        assert found is not None, error
        path = self.folder if found["folder"] else Path(found["path"])
        if found["path"] == "it":
            path = Path(error.removeprefix("error: ").split(" is damaged")[0])
        assert path.is_relative_to(self.folder.parent), error
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def left(self) -> dict[str, str]:
        """Parameters, the result without its timings, the step log."""
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


def wait_for(running: list[Started], reached: Callable[[], bool], seconds: float) -> None:
    """Wait until a run is over, something is reached, or the time is up."""
    end = time.monotonic() + seconds
    while not running[0].is_over() and time.monotonic() < end and not reached():
        time.sleep(0.004)


def torture(new: Callable[[str], TorturedRun], kills: int, seed: int, damages: float) -> None:
    """Kill runs, and damage files before a share `damages` of the starts."""
    rng = random.Random(seed)
    new("first").kill(rng, 0)  # fills caches, and imports what all starts share
    began = time.monotonic()
    undisturbed = new("undisturbed")
    assert undisturbed.finish() == "finished"
    longest, expected = time.monotonic() - began, undisturbed.left()
    killed = runs = 0
    while killed < kills:
        victim, damaged, ended = new(f"victim-{runs}"), False, None
        runs += 1
        assert runs <= 3 * kills, "it is over before it can be killed"
        while killed < kills and ended is None:
            ended = victim.kill(rng, longest)
            if ended is None:
                killed += 1
                what = victim.damage(rng) if rng.random() < damages else ""
                damaged |= bool(what)
                print(f"{killed:3} of {kills} killed {what}", flush=True)
        ended = ended or victim.finish()
        if ended != "finished":
            print(ended, flush=True)
            assert damaged, ended
            victim.follow(ended)
            assert victim.finish() == "finished"
        assert victim.left() == expected


def toy_run(toy_options, data_dir, *options: str) -> list[str]:
    corpus = f"auxiliary.dapt.path={data_dir}/corpus.txt"
    return [*toy_options, "auxiliary=dapt_tapt", *options, corpus, "checkpoint_minutes=0"]


META = ["method=meta_tartan", "method.stages.joint.batch_size=8",
        "method.stages.joint.evaluate_every=5"]  # fmt: skip


@pytest.mark.longest
def test_three_kills_change_nothing(toy_options, data_dir, tmp_path):
    options = toy_run(toy_options, data_dir, *META, "max_steps=40")
    torture(lambda name: TorturedRun(options, tmp_path / name), kills=3, seed=0, damages=0)


@pytest.mark.manual
@pytest.mark.parametrize(
    ("processes", "options"),
    [(1, ["method=dapt_tapt"]), (2, [*META, "trainer=ddp", "trainer.devices=2"])],
    ids=["three stages", "two processes"],
)
def test_many_kills_and_damages_change_nothing(processes, options, toy_options, data_dir, tmp_path):
    options = toy_run(toy_options, data_dir, *options, "max_steps=30")
    torture(
        lambda name: TorturedRun(options, tmp_path / name, processes),
        kills=KILLS, seed=1, damages=0.3,
    )  # fmt: skip
