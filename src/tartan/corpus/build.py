"""Builds a corpus folder from files of articles, in steps that are resumed where they stopped."""

import json
import os
import platform
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from loguru import logger

from tartan.corpus.records import find_files
from tartan.corpus.steps import Options, Steps, Task, listed
from tartan.data.corpus import BEGUN, LAYOUT, MANIFEST, Manifest, check_shards, read_manifest
from tartan.errors import UserError, first_line
from tartan.files import digest_of, process_lock, sha256_of, write_text_durably
from tartan.launch import end_with
from tartan.settings import build, differing

Say: TypeAlias = Callable[[str], object]


def build_corpus(options: Options, say: Say) -> Manifest:
    """Build a corpus, or continue, or find it finished; `say` takes lines about the progress."""
    logger.disable("datatrove")  # its log would bury the one line of an error
    output = Path(str(options.output)).expanduser()
    steps = Steps(
        output.resolve() / "building",
        options,
        find_files(listed(options.sources), "sources"),
        find_files(listed(options.metadata), "metadata"),
        _evaluated_texts(options),
    )
    if any(source.parent == output.resolve() for source in steps.sources):
        raise UserError(f"output={output} is the folder of the articles")
    busy = f"another process is building {output}"
    with process_lock(output / "build.lock", busy):
        wanted = _described(steps)
        if (output / MANIFEST).is_file():
            manifest = read_manifest(output)
            _check_same(wanted, manifest.model_dump(), output)
            say(f"{output} holds this corpus, finished; comparing checksums")
            check_shards(output, manifest)
        else:
            _begin(output, wanted, say)
            for name, count, task in steps.in_order():
                _run(steps.building / name, count, task, options.workers)
                say(f"{name}: {count:,} tasks done")
            _finish(output)
        (output / BEGUN).unlink(missing_ok=True)  # what an interruption leaves does not count
        shutil.rmtree(steps.building, ignore_errors=True)
        return read_manifest(output)


def _run(notes: Path, count: int, task: Task, workers: int) -> None:
    """Run the tasks whose counts are not stored yet, in processes of this machine."""
    named = {rank: notes / f"{rank:05d}.json" for rank in range(count)}
    left = {rank: note for rank, note in named.items() if not note.is_file()}
    tasks = (delayed(_run_task)(task, rank, note, os.getpid()) for rank, note in left.items())
    try:
        Parallel(min(workers, len(left)) or 1, batch_size=1)(tasks)
    except TerminatedWorkerError as error:
        raise UserError(
            "a process was killed, perhaps because memory ran out; the same command continues, "
            "with a lower `workers` it needs less"
        ) from error
    except ImportError as error:  # of a filter
        raise UserError(first_line(error)) from error


def _run_task(task: Task, rank: int, note: Path, parent: int) -> None:
    logger.disable("datatrove")
    if os.getpid() != parent:  # joblib can be told to start none
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process decides
        end_with(parent)  # so that two never write the same file
    counts = task(rank)
    os.sync()  # what the task wrote is there before it counts as finished
    _write_json(note, counts)


def _finish(output: Path) -> None:
    """Put the shards into the corpus' folder, and write the manifest, which finishes it."""
    building = output / BEGUN.parent
    shards = [_read_json(note) for note in sorted(building.glob("shards/*.json"))]
    total = Counter[str]()
    for note in building.glob("[mer]*/*.json"):
        total.update(_read_json(note))
    kept = sum(shard["examples"] for shard in shards)
    records = {name: total[name] for name in ("read", "other_field", "no_text", "bad")}
    records["kept"] = total["articles"]
    records["filtered"] = 2 * records["read"] - sum(records.values())
    examples = {n: total[n] for n in ("made", "too_short", "contaminated", "repeated")}
    examples["kept"] = kept
    counts: dict[str, Any] = {"records": records, "examples": examples}
    counts["words"] = sum(shard["words"] for shard in shards)
    counts["metadata"] = {name: total[f"metadata_{name}"] for name in ("read", "bad")}
    if not kept:
        raise UserError(f"no examples: {counts}")
    manifest = Manifest(**_read_json(output / BEGUN), counts=counts, shards=shards)
    for path in building.glob("shard-*.arrow"):
        path.replace(output / path.name)
    _write_json(output / MANIFEST, manifest.model_dump())


def _evaluated_texts(options: Options) -> list[str]:
    if not options.end_tasks or options.decontaminate is None:
        return []
    from tartan.data.text_task import TextSource  # here: it takes seconds
    from tartan.runs.command_line import quiet_libraries

    quiet_libraries()
    texts: list[str] = []
    for name, config in options.end_tasks.items():
        source = build(config, name)
        if not isinstance(source, TextSource):
            raise UserError(f"{name}: a task of images has no texts; leave it out")
        texts += source.load().evaluated_texts
    return texts


def _described(steps: Steps) -> dict[str, Any]:
    """Return all that decides a corpus, as its manifest has it."""

    def listing(files: Sequence[Path]) -> list[dict[str, Any]]:
        return [
            {"name": str(f), "size": f.stat().st_size, "checksum": f"sha256:{sha256_of(f)}"}
            for f in files
        ]

    texts = steps.evaluated
    digest = digest_of("\n".join(texts)) if texts else None
    return {
        "layout": LAYOUT,
        "settings": steps.options.deciding() | {"evaluated": digest},
        "sources": listing(steps.sources),
        "metadata": listing(steps.metadata),
    }


def _begin(output: Path, wanted: dict[str, Any], say: Say) -> None:
    """Record what is being built, or check that the folder was begun for the same corpus."""
    begun = output / BEGUN
    if begun.is_file():
        _check_same(wanted, _read_json(begun), output)
        say(f"{output} was begun before; going on")
        return
    shutil.rmtree(begun.parent, ignore_errors=True)
    versions = {name: version(name) for name in ("datatrove", "pyarrow", "numpy", "pandas")}
    _write_json(begun, wanted | {"versions": {"python": platform.python_version(), **versions}})


def _check_same(wanted: dict[str, Any], there: dict[str, Any], output: Path) -> None:
    kinds = ("layout", "sources", "metadata")
    before, now = (one["settings"] | {kind: one[kind] for kind in kinds} for one in (there, wanted))
    if names := differing(before, now):
        raise UserError(
            f"{output} holds another corpus, of other {', '.join(names)}; name another output"
        )


def _write_json(path: Path, content: Any) -> None:
    write_text_durably(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
