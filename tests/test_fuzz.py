"""Damaged and hostile inputs end as they should: a result, or one line that says what is wrong.

Each input is a whole one that was changed at random, and is read by a process of its own, under a
limit of time and of memory. A few of them are part of the suite; `make fuzz` tries 2,000, others
with `FUZZ_SEED=2 make fuzz`, and fewer with `FUZZ=300 make fuzz`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from tartan.data.corpus import check_shards, load_corpus, read_manifest
from tartan.data.labelled import write_trained_columns
from tartan.encoders.pretrained import PretrainedEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.methods.checkpoint import load_checkpoint
from tartan.predict.predict import Settings, predict_file
from tartan.report.report import report_of, write_report
from tests.corpus.made_up import article, built, write_articles, write_shard
from tests.predict.conftest import classifier  # noqa: F401
from tests.report.made_up_runs import result_of, write_run

SECONDS = 60
MEMORY = 3 << 30
"""Bytes of address space that an input may take beyond what the process had."""
ROWS = [{"text": f"row {i} of caf\u00e9s, \u65e5\u672c", "label": "ab"[i % 2]} for i in range(30)]
VICTIM = "precious"
ODD = [
    *(None, True, -1, 0, 1, 2**31, 10**9, 10**30, 1e308, float("nan"), "", "a", "\x1b[2J", "\x00"),
    *([], {}, [[]], {"": 0}, ["a"], "../../x", "/", "x" * 5000, {"auto_map": {"AutoModel": "a.B"}}),
    *("owner/kernel", "own.OwnConfig", "cuda", "float16"),
]
EXTRA = [
    *("auto_map", "_attn_implementation", "quantization_config", "model_type", "names_file"),
    *("configuration_files", "fast_tokenizer_files", "transformers_weights", "tokenizer_class"),
]
CODE = "from pathlib import Path; Path({canary!r}).touch()\n"


class Targets:
    """Whole inputs of each kind, by the function that reads a copy of them."""

    def __init__(self, folder: Path, classifier_folder: Path) -> None:
        self.folder, self.canary, self.victim = folder, folder / "canary", folder / "victim"
        folder.mkdir()
        self.victim.write_text(VICTIM)
        shutil.copytree(classifier_folder, folder / "classifier")
        sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        config = BertConfig(vocab_size=len(letter_pair_tokenizer()), intermediate_size=24, **sizes)
        BertForMaskedLM(config).save_pretrained(folder / "encoder")
        letter_pair_tokenizer().save_pretrained(folder / "encoder")
        for name in ("classifier", "encoder"):
            (folder / name / "own.py").write_text(CODE.format(canary=str(self.canary)))
        write_trained_columns(
            {"text": "text", "label": "label", "text_pair": None}, folder / "classifier"
        )
        for name in ("checkpoint", "table", "corpus", "report"):
            (folder / name).mkdir()
        state = {"state_dict": {"w": torch.ones(3, 4)}, "step": 3, "names": ["a"]}
        torch.save(state, folder / "checkpoint" / "a.ckpt")
        lines = "".join(json.dumps(row) + "\n" for row in ROWS)
        table = pa.Table.from_pylist(ROWS)
        for name in ("table", "corpus"):
            (folder / name / "a.jsonl").write_text(lines)
            pq.write_table(table, folder / name / "a.parquet")
        for seed in (0, 1):
            result = result_of("mt_tartan", seed, 0.5, auxiliaries=["tapt"], flops=1e9)
            write_run(folder / "report" / f"run{seed}", result)
        (folder / "table" / "a.csv").write_text(
            "text,label\n" + "".join(f'"{row["text"]}",{row["label"]}\n' for row in ROWS)
        )
        (folder / "corpus" / "a.txt").write_text("".join(row["text"] + "\n" for row in ROWS))
        write_articles(folder / "articles", shards=1, articles=5)
        texts = ["some words", "of an article"]
        write_shard(folder / "articles" / "b.jsonl", [article(n, texts) for n in range(9)])
        built(folder / "articles", folder / "built")
        self.kinds = {
            "classifier": self._classifier,
            "encoder": lambda at, _: PretrainedEncoder(str(at)).load(),
            "checkpoint": self._checkpoint,
            "table": self._table,
            "report": self._report,
            "corpus": lambda at, file: load_corpus(file, "text", at / "cache").texts["text"][:],
            "built": self._built,
            "articles": lambda at, _: built(at, at / "out", bad_records="skip"),
        }

    def _classifier(self, at: Path, _: Path) -> None:
        (at / "in.csv").write_text("text\nred apple\n1\ny\n")
        self._predict(at, at / "in.csv")

    def _table(self, at: Path, file: Path) -> None:
        self._predict(self.folder / "classifier", file)

    def _predict(self, model: Path, file: Path) -> None:
        target = file.with_name(f"out{file.suffix}")
        predict_file(Settings(str(model), str(file), str(target), text="text", device="cpu"))

    def _report(self, at: Path, _: Path) -> None:
        write_report(report_of(at), at / "out")

    def _built(self, at: Path, _: Path) -> None:
        load_corpus(at, "text", at / "cache")
        check_shards(at, read_manifest(at))  # reads all of it, which opening it does not
        list(load_corpus(at, "text", at / "cache").texts["text"])

    def _checkpoint(self, at: Path, file: Path) -> None:
        load_checkpoint(file)


def changed(content: bytes, name: str, rng: random.Random) -> bytes:
    """`content` with a change that storage, transport or malice makes."""
    if name.endswith(".json") and rng.random() < 0.7:
        with contextlib.suppress(ValueError):  # an earlier change has left no JSON
            return _changed_json(content, rng)
    at = rng.randrange(len(content) + 1)
    end = min(len(content), at + rng.choice([1, 8, 500]))
    kind = rng.randrange(5)
    if kind == 0 and at < len(content):
        return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
    if kind == 1:
        return content[:at]
    if kind == 2:
        return content[:at] + content[end:]
    if kind == 3:
        return content[:at] + content[at:end] * 3 + content[end:]
    return content[:at] + rng.randbytes(rng.choice([1, 4, 64])) + content[at:]


def _changed_json(content: bytes, rng: random.Random) -> bytes:
    value = node = json.loads(content)
    while isinstance(node, dict | list) and node:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.7:
            node = node[key]
            continue
        if isinstance(node, dict) and rng.random() < 0.2:
            key = rng.choice(EXTRA)
        node[key] = rng.choice(ODD)
        break
    return json.dumps(value).encode()


def replace(file: Path, victim: Path, rng: random.Random) -> None:
    """Put in a file's place a link to one elsewhere, to itself, a pipe or a folder.

    Or a link beside it, where the program may write.
    """
    kind = rng.randrange(6)
    if kind == 0:
        other = rng.choice(["out", f"{file.name}.part"])
        (file.parent / other).symlink_to(victim)
        return
    content = file.read_bytes()
    file.unlink()
    if kind == 1:
        file.symlink_to(victim)
    elif kind == 2:
        file.symlink_to(file.name)
    elif kind == 3:
        os.mkfifo(file)
    elif kind == 4:
        file.mkdir()
    else:  # the same content, elsewhere
        moved = file.parent.parent / f"moved-{file.name}"
        moved.write_bytes(content)
        file.symlink_to(moved)


def outcome(read, at: Path, file: Path) -> str:
    """`read`, or `one line`; everything else is told as it was. In a process of its own."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        signal.alarm(SECONDS)
        try:
            read(at, file)
            said = "read"
        except UserError as error:
            said = "one line" if "\n" not in str(error) else f"several lines: {error}"
        except BaseException:
            said = traceback.format_exc()
        os.write(sending, said.encode(errors="replace")[-60_000:])
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as stream:
        said = stream.read().decode()
    _, status = os.waitpid(child, 0)
    return said or f"ended by signal {os.WTERMSIG(status)}"


def fuzz(targets: Targets, count: int, seed: int, scratch: Path) -> tuple[Counter[str], list[str]]:
    """Counts of outcomes by kind of input, and what went wrong."""
    counts: Counter[str] = Counter()
    wrong = []
    for number in range(count):
        rng = random.Random(f"{seed}:{number}")
        kind = rng.choice(list(targets.kinds))
        at = scratch / str(number)
        shutil.copytree(targets.folder / kind, at)
        files = (path for path in at.rglob("*") if path.is_file() and path.suffix != ".py")
        file = rng.choice(sorted(files))
        if rng.random() < 0.1:
            replace(file, targets.victim, rng)
        else:
            for _ in range(rng.choice([1, 1, 3])):
                file.write_bytes(changed(file.read_bytes(), file.name, rng))
        said = outcome(targets.kinds[kind], at, file)
        if targets.canary.exists():
            said = "code of the input was run"
            targets.canary.unlink()
        if targets.victim.read_text() != VICTIM:
            said = "a file elsewhere was changed"
            targets.victim.write_text(VICTIM)
        known = said in ("read", "one line")
        counts[f"{kind}: {said if known else 'WRONG'}"] += 1
        if known:
            shutil.rmtree(at)
        else:
            wrong.append(f"input {seed}:{number} ({kind}, {file.name}, kept in {at})\n{said}")
    return counts, wrong


@pytest.fixture
def targets(classifier, tmp_path):  # noqa: F811
    return Targets(tmp_path / "whole", classifier)


def check(targets, count, seed, scratch):
    counts, wrong = fuzz(targets, count, seed, scratch)
    for kind, number in sorted(counts.items()):
        print(f"{number:6,}  {kind}")
    assert not wrong, "\n\n".join(wrong)


def test_some_changed_inputs(targets, tmp_path):
    check(targets, 15, 0, tmp_path)


@pytest.mark.manual
def test_many_changed_inputs(targets, tmp_path):
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    check(targets, int(os.environ.get("FUZZ", "2000")), seed, tmp_path)
