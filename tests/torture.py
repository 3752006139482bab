"""Processes that are killed at random moments, their files damaged, and started again.

What is tortured ends as if undisturbed, or says in one line what to remove or to say; where that is
done, it ends as if undisturbed too.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from tests.programs import Started

PATIENCE = 120
"""Seconds to wait for a moment that may not come."""
_GLANCE = 0.004
"""Seconds between two looks at what a process does."""
_ADVICE = re.compile(
    r"(?P<folder>remove the folder|name another folder)|remove (?P<path>\S+?)\b,? "
)


class Tortured(ABC):
    """A command that is killed and started again; all that it leaves is below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def start(self) -> Sequence[Started]:
        """Its processes; the first is the one whose end counts."""

    @abstractmethod
    def being_written(self) -> Hashable:
        """Another value whenever something is begun to be written, or done."""

    @abstractmethod
    def files(self) -> list[Path]:
        """What may be damaged."""

    @abstractmethod
    def left(self) -> object:
        """What has to be the same at its end, however it came there."""

    def moments(self) -> dict[str, Callable[[random.Random, Callable[[], bool]], object]]:
        """Further moments at which it is killed, by what to call them."""
        return {}

    def follow(self, advice: str) -> None:
        """Do what an error asks for, where that is to remove something, or to start over."""
        found = _ADVICE.search(advice)
        assert found is not None, advice
        path = self.folder if found["folder"] else Path(found["path"])
        if found["path"] == "it":
            path = Path(advice.removeprefix("error: ").split(" is damaged")[0])
        assert path.is_relative_to(self.folder.parent), advice
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def finish(self) -> str:
        """Start it and wait for its end: `finished`, or the error that it ends with."""
        return self._ended(self.start())

    def _ended(self, processes: Sequence[Started]) -> str:
        first, *others = processes
        done = first.wait()
        for other in others:
            other.kill()
            other.wait()
        errors = done.stderr.decode()
        if done.returncode == 0:
            return "finished"
        told = [line for line in errors.splitlines() if line.startswith("error:")]
        assert done.returncode == 1, errors
        assert len(told) == 1, errors
        assert "Traceback" not in errors, errors
        assert _ADVICE.search(told[0]), errors
        return told[0]

    def kill(self, moment: str, rng: random.Random, longest: float) -> str | None:
        """Start it and kill it at such a moment; its end, where it came before."""
        processes = self.start()
        first = processes[0]

        def is_over() -> bool:
            return first.is_over()

        if moment == "at any time":
            wait(is_over, lambda: False, rng.uniform(0, longest))
        elif moment == "while a file is being written":
            for _ in range(rng.randrange(1, 11)):
                now = self.being_written()
                wait(is_over, lambda now=now: self.being_written() != now, PATIENCE)
        else:
            self.moments()[moment](rng, is_over)
        if is_over():
            return self._ended(processes)
        # where there are several, any of them may be the first to be gone
        for process in rng.sample(processes, len(processes)):
            process.kill()
            if len(processes) > 1:
                time.sleep(rng.uniform(0, 0.3))
        for process in processes:
            process.wait()
        return None

    def damage(self, rng: random.Random) -> str:
        """Change a bit of a file, or cut it, as a disk might; returns what was done."""
        files = [path for path in sorted(self.files()) if path.stat().st_size]
        if not files:
            return ""
        path = rng.choice(files)
        content = path.read_bytes()
        at = rng.randrange(len(content))
        name = path.relative_to(self.folder.parent)
        if rng.random() < 0.5:
            path.write_bytes(content[:at])
            return f"cut {name} at {at}"
        changed = bytes([content[at] ^ 1 << rng.randrange(8)])
        path.write_bytes(content[:at] + changed + content[at + 1 :])
        return f"changed a bit of {name} at {at}"


def wait(is_over: Callable[[], bool], reached: Callable[[], bool], seconds: float) -> None:
    """Until a process is over, something is reached, or the time is up."""
    end = time.monotonic() + seconds
    while not is_over() and time.monotonic() < end and not reached():
        time.sleep(_GLANCE)


def torture(new: Callable[[str], Tortured], kills: int, seed: int, damages: float) -> Counter[str]:
    """Kill commands, and damage files before a share `damages` of the starts.

    Args:
        new: makes the command whose files have a name.

    Returns:
        How often what happened.
    """
    rng = random.Random(seed)
    # fills caches, and imports what all starts share
    new("first").kill("while a file is being written", rng, 0)
    began = time.monotonic()
    undisturbed = new("undisturbed")
    assert undisturbed.finish() == "finished"
    longest = time.monotonic() - began
    expected, told = undisturbed.left(), Counter[str]()
    while told["kills"] < kills:
        victim, damaged, ended = new(f"victim-{told['commands']}"), False, None
        told["commands"] += 1
        assert told["commands"] <= 3 * kills, "it is over before it can be killed"
        names = ["at any time", "while a file is being written", *victim.moments()]
        while told["kills"] < kills:
            moment = names[told["kills"] % len(names)]
            ended = victim.kill(moment, rng, longest)
            if ended is not None:
                break
            told["kills"] += 1
            what = victim.damage(rng) if rng.random() < damages else ""
            damaged |= bool(what)
            told["damages"] += bool(what)
            print(f"{told['kills']:3} of {kills} killed {moment} {what}", flush=True)
        ended = ended or victim.finish()
        if ended != "finished":
            print(ended, flush=True)
            assert damaged, ended
            told["refused"] += 1
            victim.follow(ended)
            ended = victim.finish()
            assert ended == "finished", ended
        assert victim.left() == expected
    seconds = time.monotonic() - began
    print(f"{dict(told)} in {seconds:.0f} s; all ended as the undisturbed one", flush=True)
    return told
