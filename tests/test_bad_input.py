"""Bad input ends in one line that says what is wrong, before any training and with nothing left."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertModel, T5Config, T5Model

from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.runs.run import run_experiment
from tests.in_process import config_of, toy

Files = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """What is given, and the message; `{folder}` is the case's own folder, `{data}` the toy task's.

    Attributes:
        message: its beginning, which names the option, or the file with its line.
        options: overrides of the toy run.
        method: of the toy run.
        files: written to the folder before.
        make: fills the folder further.
        own_task: leave out the toy task, `options` name another.
    """

    message: str
    options: tuple[str, ...]
    method: str = "finetune"
    files: Files = field(default_factory=dict)
    make: Callable[[Path], object] | None = None
    own_task: bool = False


def case(message: str, *options: str, **more) -> Case:
    return Case(message, options, **more)


def jsonl(*examples: tuple[object, object]) -> bytes:
    lines = [json.dumps({"text": text, "label": label}) + "\n" for text, label in examples]
    return "".join(lines).encode()


EIGHT = jsonl(*((f"text {i}", "AR"[i % 2]) for i in range(8)))


def labelled(message: str, content: bytes, split: str = "train") -> Case:
    """A split of the toy task is a file with `content`."""
    return case(message, f"task.{split}={{folder}}/f.jsonl", files={"f.jsonl": content})


def corpus(message: str, name: str, content: bytes, *options: str) -> Case:
    """The corpus is a file with `content`."""
    path = f"auxiliary.dapt.path={{folder}}/{name}"
    return case(message, path, *options, method="dapt", files={name: content})


def parquet(**columns) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


MANY = gzip.compress(b"".join(b"text %d\n" % i for i in range(20000)), mtime=0)
PICK = "the field 'text' must be a string, not"

FILES = {
    "train missing": case("{folder}/none.jsonl", "task.train={folder}/none.jsonl"),
    "train is a folder": case("{folder}", "task.train={folder}"),
    "train is null": case(
        "task.train names no file; give your labelled examples",
        "task.train=null",
    ),
    "train empty": labelled("{folder}/f.jsonl holds no examples", b""),
    "train blank": labelled("{folder}/f.jsonl holds no examples", b"\n \n"),
    "test empty": labelled("{folder}/f.jsonl holds no examples", b"", "test"),
    "train ends within a line": labelled(
        "{folder}/f.jsonl, line 8",
        EIGHT[:-12],
    ),
    "line 3 is no JSON": labelled(
        "{folder}/f.jsonl, line 3",
        EIGHT.replace(b'{"text": "text 2"', b'{text: "text 2"'),
    ),
    "latin-1": labelled(
        "{folder}/f.jsonl, line 9",
        EIGHT + '{"text": "café", "label": "A"}\n'.encode("latin-1"),
    ),
    "utf-16": labelled(
        "{folder}/f.jsonl, line 1",
        EIGHT.decode().encode("utf-16"),
    ),
    "a list": labelled(
        "{folder}/f.jsonl, line 9",
        EIGHT + b"[1]\n",
    ),
    "field missing": labelled(
        "{folder}/f.jsonl, line 9",
        EIGHT + b'{"text": "a"}\n',
    ),
    "field null": labelled("{folder}/f.jsonl, line 9", EIGHT + jsonl((None, "A"))),
    "label a number": labelled(
        "{folder}/f.jsonl, line 9",
        EIGHT + jsonl(("a", 3)),
    ),
    "half a surrogate pair": labelled(
        "{folder}/f.jsonl, line 9",
        EIGHT + jsonl(("\ud800", "A")),
    ),
    "brackets without end": labelled("{folder}/f.jsonl, line 9", EIGHT + b"[" * 200_000),
    "number without end": labelled(
        "{folder}/f.jsonl, line 9",
        EIGHT + b'{"text": ' + b"1" * 5000 + b"}",
    ),
    "dev label unknown": labelled(
        "{folder}/f.jsonl",
        EIGHT + jsonl(("a", "new")),
        "dev",
    ),
    "test label unknown": labelled(
        "{folder}/f.jsonl",
        EIGHT + jsonl(("a", "new")),
        "test",
    ),
    "one label": labelled(
        "{folder}/f.jsonl",
        jsonl(("a", "A"), ("b", "A")),
    ),
    "paper task not there": case(
        "{folder}/acl_arc/train.jsonl",
        "task=acl_arc",
        "data_dir={folder}",
        own_task=True,
    ),
    "paper task changed": case(
        "{folder}/acl_arc/train.jsonl",
        "task=acl_arc",
        "data_dir={folder}",
        own_task=True,
        make=lambda folder: [
            (folder / "acl_arc").mkdir(),
            (folder / "acl_arc/train.jsonl").write_bytes(b""),
        ],
    ),
}

CORPORA = {
    "missing": case(
        "{folder}/none.txt",
        "auxiliary.dapt.path={folder}/none.txt",
        method="dapt",
    ),
    "a folder": case("corpus {folder}", "auxiliary.dapt.path={folder}", method="dapt"),
    "blank": corpus("auxiliary dapt", "c.txt", b"\n \n" * 100),
    "without the column": corpus(
        "corpus {folder}/c.jsonl",
        "c.jsonl",
        b'{"body": "a"}\n' * 100,
    ),
    "absurd size": case(
        "auxiliary.size=1e+12 asks for 48000000000000 examples",
        "auxiliary.size=1e12",
        method="dapt",
    ),
    "file and hub": case(
        "auxiliary.dapt",
        "auxiliary.dapt.hub=x/y",
        method="dapt",
    ),
    "no auxiliary": case(
        "stage tapt of method tapt",
        "auxiliary=none",
        method="tapt",
    ),
    "no domain text": case(
        "stage dapt of method dapt",
        "~auxiliary.dapt",
        method="dapt",
    ),
}

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 40,
}


@cache
def body(vocabulary: int) -> BertModel:
    return BertModel(BertConfig(vocab_size=vocabulary, **SMALL))


def encoder(message: str, spoil: Callable[[Path], object], *options: str, **more) -> Case:
    """A saved encoder in `{folder}/model`, spoilt."""

    def make(folder: Path) -> None:
        tokenizer = letter_pair_tokenizer()
        body(len(tokenizer)).save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
        spoil(folder / "model")

    chosen = ("encoder=huggingface", "encoder.name={folder}/model", *options)
    return Case(message, chosen, make=make, **more)


def without(*names: str) -> Callable[[Path], object]:
    return lambda model: [path.unlink() for name in names for path in model.glob(name)]


def lacking_token(token: str) -> Callable[[Path], object]:
    def spoil(model: Path) -> None:
        tokenizer = letter_pair_tokenizer()
        setattr(tokenizer, token, None)
        tokenizer.save_pretrained(model)

    return spoil


def pickled(model: Path) -> None:
    (model / "model.safetensors").unlink()
    torch.save({}, model / "pytorch_model.bin")


def wider(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "hidden_size": 32}))


def with_decoder(model: Path) -> None:
    config = T5Config(vocab_size=2000, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    T5Model(config).save_pretrained(model)


ENCODERS = {
    "no folder": encoder("encoder folder {folder}/model", shutil.rmtree),
    "a file": encoder(
        "encoder folder {folder}/model/config.json",
        without(),
        "encoder.name={folder}/model/config.json",
    ),
    "no config": encoder(
        "{folder}/model",
        without("config.json"),
    ),
    "broken config": encoder(
        "{folder}/model/config.json",
        lambda model: (model / "config.json").write_text("{"),
    ),
    "no tokenizer": encoder("encoder folder {folder}/model", without("tokenizer*")),
    "broken tokenizer": encoder(
        "encoder {folder}/model",
        lambda model: (model / "tokenizer.json").write_text("{}"),
    ),
    "no weights": encoder(
        "encoder {folder}/model",
        without("*.safetensors"),
    ),
    "pickled weights": encoder(
        "encoder {folder}/model",
        pickled,
    ),
    "torn weights": encoder(
        "encoder {folder}/model",
        lambda model: (model / "model.safetensors").write_bytes(b""),
    ),
    "other weights": encoder(
        "encoder folder {folder}/model",
        lambda model: save_file(
            {"x": torch.zeros(1)}, model / "model.safetensors", metadata={"format": "pt"}
        ),
    ),
    "other shapes": encoder(
        "encoder {folder}/model",
        wider,
    ),
    "tokenizer of another model": encoder(
        "encoder folder {folder}/model",
        lambda model: body(100).save_pretrained(model),
    ),
    "no padding": encoder(
        "encoder folder {folder}/model",
        lacking_token("pad_token"),
    ),
    "no mask": encoder(
        "encoder {folder}/model",
        lacking_token("mask_token"),
        method="tapt",
    ),
    "encoder and decoder": encoder(
        "encoder {folder}/model",
        with_decoder,
    ),
    "texts longer than its positions": encoder(
        "task.max_length=41",
        without(),
        "task.max_length=41",
    ),
    "reads images": case(
        "Classification",
        "encoder=wide_resnet",
        "encoder.mean=[0.5]",
        "encoder.std=[0.5]",
    ),
    "reads no images": case(
        "classifier=images",
        "classifier=images",
    ),
    "auxiliary longer than its positions": case(
        "auxiliary.tapt.max_length=513",
        "auxiliary.tapt.max_length=513",
        method="tapt",
    ),
}

STAGE, META = "method.stages.joint", "meta_tartan"
NUMBERS = {
    "seed": case("seed", "seed=-1"),
    "of a stage": case(
        "method.stages.joint.batch_size",
        f"{STAGE}.batch_size=0",
        method=META,
    ),
    "of a weighting": case(
        "weighting.eta",
        "weighting.eta=fast",
        method=META,
    ),
    "long texts": case(
        "task.max_length=513",
        "task.max_length=513",
    ),
    "shares of tokens": case(
        "auxiliary.tapt.objective",
        "auxiliary.tapt.objective.random=0.5",
        method="tapt",
    ),
    "stage without an end": case(
        "give max_steps or max_epochs",
        "method.stages.finetune.max_epochs=null",
    ),
    "more tasks than examples": case(
        "sampled=9 tasks",
        f"{STAGE}.sampled=9",
        method=META,
    ),
}
DEVICES = "trainer: `devices` selected with `CPUAccelerator` should be an int > 0."
STATIC = ("weighting=static",)
SETTINGS = {
    "metric that is none": case(
        "task.metric=acuracy",
        "task.metric=acuracy",
    ),
    "metric of which lower is better": case(
        "task.metric=ece",
        "+metrics.ece._target_=torchmetrics.classification.MulticlassCalibrationError",
        "task.metric=ece",
    ),
    "metric class that is none": case(
        "metrics.macro_f1",
        "metrics.macro_f1._target_=nowhere.Metric",
    ),
    "metric argument": case(
        "metrics.macro_f1",
        "metrics.macro_f1.average=best",
    ),
    "weighting class that is none": case(
        "weighting",
        "weighting._target_=nowhere.Weighting",
        method=META,
    ),
    "stage class that is none": case(
        "module=nowhere.X of a stage",
        "method.stages.finetune.module=nowhere.X",
    ),
    "values missing": case("weighting", *STATIC, method="mt_tartan"),
    "values of other tasks": case(
        "weighting",
        *STATIC,
        "weighting.values={end_task: 1, news: 1}",
        method="mt_tartan",
    ),
    "values all zero": case(
        "weighting",
        *STATIC,
        "weighting.values={end_task: 0, dapt: 0, tapt: 0}",
        method="mt_tartan",
    ),
    "meta weighting without a meta head": case(
        "this weighting",
        "weighting=meta",
        method="mt_tartan",
    ),
    "meta weighting of a frozen body": case(
        "freeze_body=true leaves nothing for this weighting to weigh",
        f"{STAGE}.freeze_body=true",
        method=META,
    ),
    "meta head of too few": case(
        "method.stages.joint.meta_head.examples_from=rest",
        f"{STAGE}.meta_head.examples_from=rest",
        f"{STAGE}.meta_head.examples=41",
        method=META,
    ),
    "patience of a stage that nothing evaluates": case(
        "method.stages.dapt",
        "method.stages.dapt.patience=3",
        method="dapt",
    ),
    "evaluations of a stage that nothing evaluates": case(
        "method.stages.dapt",
        "method.stages.dapt.evaluate_every=10",
        method="dapt",
    ),
    "accelerator unknown": case(
        "trainer",
        "trainer.accelerator=warp",
    ),
    "accelerator not there": case(
        "trainer",
        "trainer.accelerator=gpu",
    ),
    "nodes": case("trainer", "+trainer.num_nodes=0"),
    "clipping": case(
        "trainer.gradient_clip_val",
        "+trainer.gradient_clip_val=0.5",
    ),
    "accumulation": case(
        "trainer.accumulate_grad_batches",
        "+trainer.accumulate_grad_batches=4",
    ),
    "fast_dev_run": case(
        "trainer.fast_dev_run",
        "+trainer.fast_dev_run=true",
    ),
    "trainer argument": case(
        "trainer",
        "+trainer.bogus=1",
    ),
    "trainer class that is none": case("trainer", "trainer._target_=nowhere.Trainer"),
    "logger class that is none": case(
        "logger.csv",
        "logger.csv._target_=nowhere.Logger",
    ),
    "precision taken away": case("trainer.precision", "~trainer.precision"),
    **{
        f"devices {devices}": case(DEVICES, f"trainer.devices={devices}", "trainer.accelerator=cpu")
        for devices in ("many", "-1", "null")
    },
}

ONCE = jsonl(*((f"text {i}", "AR"[i % 2]) for i in range(8)), ("text 8", "rare"))
HELD_OUT = {
    "a label with one example": case(
        "{folder}/t.jsonl",
        "task.train={folder}/t.jsonl", "task.dev=null", files={"t.jsonl": ONCE},
    ),
    "a dev split too large for the labels": case(
        "{folder}/t.jsonl",
        "task.train={folder}/t.jsonl", "task.dev=null", "task.dev_share=0.9",
        files={"t.jsonl": EIGHT},
    ),
}  # fmt: skip

CASES = {
    f"{kind}: {name}": entry
    for kind, entries in (
        ("files", FILES),
        ("held out", HELD_OUT),
        ("corpus", CORPORA),
        ("encoder", ENCODERS),
        ("number", NUMBERS),
        ("setting", SETTINGS),
    )
    for name, entry in entries.items()
}


@pytest.fixture(autouse=True)
def no_training(monkeypatch):
    """Training that starts is a failure; and there is no GPU."""

    def never(*args, **kwargs):
        raise AssertionError("training started")

    monkeypatch.setattr("lightning.pytorch.Trainer.fit", never)
    for kind in ("CUDA", "MPS"):
        monkeypatch.setattr(
            f"lightning.pytorch.accelerators.{kind}Accelerator.is_available", lambda: False
        )


def message_of(options: list[str], folder: Path) -> str:
    """What the user is told; nothing may be left that looks like a run's."""
    with pytest.raises(UserError) as caught:
        run_experiment(config_of(options), folder)
    left = {path.name for path in folder.rglob("*")} if folder.is_dir() else set()
    assert not left & {"result.json", "checkpoints"}
    assert not [name for name in left if name.endswith(".part")]
    return str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_the_message_is_one_line_and_comes_before_any_training(name, data_dir, cache_dir, tmp_path):
    entry, folder = CASES[name], tmp_path / "given"
    folder.mkdir()
    for file, content in entry.files.items():
        (folder / file).write_bytes(content)
    if entry.make is not None:
        entry.make(folder)

    def filled(text: str) -> str:
        return text.replace("{folder}", str(folder)).replace("{data}", str(data_dir))

    options = toy(data_dir, cache_dir, entry.method)
    if entry.own_task:
        options = [option for option in options if not option.startswith("task")]
    message = message_of([*options, *map(filled, entry.options)], tmp_path / "run")
    assert message.startswith(filled(entry.message))
    assert "\n" not in message


def test_a_gzip_file_that_ends_too_early_is_named_with_the_place(data_dir, cache_dir, tmp_path):
    path = tmp_path / "c.txt.gz"
    path.write_bytes(MANY[: len(MANY) // 2])
    options = toy(data_dir, cache_dir, "dapt", f"auxiliary.dapt.path={path}")
    message = message_of(options, tmp_path / "run")
    assert message.startswith(str(path))
    assert re.search(r"line \d+", message)  # which, depends on the compressor
