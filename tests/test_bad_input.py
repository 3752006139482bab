"""Bad input ends in one line that says what is wrong, before any training and with nothing left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from transformers import BertConfig, BertModel

from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.runs.run import run_experiment
from tests.in_process import config_of, toy


class Case(NamedTuple):
    """What is given, and the beginning of the message; `{folder}` is the case's own folder."""

    message: str
    options: list[str]
    method: str = "finetune"
    make: Callable[[Path], object] = lambda folder: None


def case(message: str, *options: str, method: str = "finetune") -> Case:
    return Case(message, list(options), method)


def jsonl(*examples: tuple[object, object]) -> bytes:
    lines = [json.dumps({"text": text, "label": label}) + "\n" for text, label in examples]
    return "".join(lines).encode()


EIGHT = jsonl(*((f"text {i}", "AR"[i % 2]) for i in range(8)))


def labelled(message: str, content: bytes, split: str = "train", *options: str) -> Case:
    """A split of the toy task is a file with `content`."""

    def make(folder: Path) -> None:
        (folder / "f.jsonl").write_bytes(content)

    given = [f"task.{split}={{folder}}/f.jsonl", *options]
    return Case(f"{{folder}}/f.jsonl{message}", given, make=make)


FILES = {
    "train missing": case("{folder}/none.jsonl", "task.train={folder}/none.jsonl"),
    "train is null": case("task.train names no file", "task.train=null"),
    "train blank": labelled(" holds no examples", b"\n \n"),
    "train ends within a line": labelled(", line 8", EIGHT[:-12]),
    "test label unknown": labelled(": labels", EIGHT + jsonl(("a", "new")), "test"),
    "one label": labelled(": training needs at least two labels", jsonl(("a", "A"), ("b", "A"))),
    "one label with two examples": labelled(
        ": too few examples",
        jsonl(*((t, "AR"[t == "d"]) for t in "abcd")),
        "train",
        "task.dev=null",
    ),
    "corpus missing": case(
        "{folder}/none.txt", "auxiliary.dapt.path={folder}/none.txt", method="dapt"
    ),
    "corpus too small": case(
        "auxiliary.size=1e+12 asks for 48000000000000", "auxiliary.size=1e12", method="dapt"
    ),
}

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 40,
}  # fmt: skip


def encoder(spoil: Callable[[Path], object]) -> Case:
    """A saved encoder in `{folder}/model`, spoilt."""

    def make(folder: Path) -> None:
        tokenizer = letter_pair_tokenizer()
        BertModel(BertConfig(vocab_size=len(tokenizer), **SMALL)).save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
        spoil(folder / "model")

    return Case("", ["encoder=huggingface", "encoder.name={folder}/model"], make=make)


def without(pattern: str) -> Callable[[Path], object]:
    return lambda model: [path.unlink() for path in model.glob(pattern)]


def without_padding(model: Path) -> None:
    tokenizer = letter_pair_tokenizer()
    tokenizer.pad_token = None
    tokenizer.save_pretrained(model)


def wider(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "hidden_size": 32}))


ENCODERS = {
    "no folder": encoder(shutil.rmtree),
    "no config": encoder(without("config.json")),
    "no tokenizer": encoder(without("tokenizer*")),
    "no weights": encoder(without("*.safetensors")),
    "torn weights": encoder(lambda model: (model / "model.safetensors").write_bytes(b"")),
    "other shapes": encoder(wider),
    "no padding": encoder(without_padding),
}
CASES = {
    f"{kind}: {name}": entry
    for kind, entries in (("files", FILES), ("encoder", ENCODERS))
    for name, entry in entries.items()
}


@pytest.mark.parametrize("name", CASES)
def test_the_message_is_one_line_and_comes_before_any_training(
    name, data_dir, cache_dir, tmp_path, monkeypatch
):
    def never(*args, **kwargs):
        raise AssertionError("training started")

    monkeypatch.setattr("lightning.pytorch.Trainer.fit", never)
    entry, folder, run = CASES[name], tmp_path / "given", tmp_path / "run"
    folder.mkdir()
    entry.make(folder)
    options = toy(data_dir, cache_dir, entry.method)
    options += [option.replace("{folder}", str(folder)) for option in entry.options]
    with pytest.raises(UserError) as caught:
        run_experiment(config_of(options), run)
    assert str(caught.value).startswith(entry.message.replace("{folder}", str(folder)))
    assert "\n" not in str(caught.value)
    left = {path.name for path in run.rglob("*")}
    assert not [name for name in left if name in ("result.json", "checkpoints") or ".part" in name]
