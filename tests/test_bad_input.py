"""Bad input ends in one line that says what is wrong, before any training and with nothing left."""

from __future__ import annotations

import gzip
import io
import json
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
        message: the whole of it.
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
    "train missing": case("{folder}/none.jsonl does not exist", "task.train={folder}/none.jsonl"),
    "train is a folder": case("{folder} is a folder; name a file in it", "task.train={folder}"),
    "train is null": case(
        "task.train names no file; give your labelled examples: task.train=FILE (CSV, TSV, JSONL "
        "or Parquet), or task.hub=NAME",
        "task.train=null",
    ),
    "train empty": labelled("{folder}/f.jsonl holds no examples", b""),
    "train blank": labelled("{folder}/f.jsonl holds no examples", b"\n \n"),
    "test empty": labelled("{folder}/f.jsonl holds no examples", b"", "test"),
    "train ends within a line": labelled(
        "{folder}/f.jsonl, line 8: not JSON (Unterminated string starting at, column 20)",
        EIGHT[:-12],
    ),
    "line 3 is no JSON": labelled(
        "{folder}/f.jsonl, line 3: not JSON "
        "(Expecting property name enclosed in double quotes, column 2)",
        EIGHT.replace(b'{"text": "text 2"', b'{text: "text 2"'),
    ),
    "latin-1": labelled(
        "{folder}/f.jsonl, line 9: not UTF-8; save it as UTF-8, or: iconv -f "
        "WINDOWS-1252 -t UTF-8 FILE > NEW",
        EIGHT + '{"text": "café", "label": "A"}\n'.encode("latin-1"),
    ),
    "utf-16": labelled(
        "{folder}/f.jsonl, line 1: not UTF-8 but UTF-16; save the file as UTF-8",
        EIGHT.decode().encode("utf-16"),
    ),
    "a list": labelled(
        '{folder}/f.jsonl, line 9: expected an object, {"NAME": VALUE, ...}',
        EIGHT + b"[1]\n",
    ),
    "field missing": labelled(
        "{folder}/f.jsonl, line 9: the field 'label' is missing; fill it in, or remove the row "
        "(task.empty_label=unlabelled takes the texts of such rows as unlabelled text)",
        EIGHT + b'{"text": "a"}\n',
    ),
    "field null": labelled(f"{{folder}}/f.jsonl, line 9: {PICK} null", EIGHT + jsonl((None, "A"))),
    "label a number": labelled(
        "{folder}/f.jsonl, line 9: the field 'label' must be a string, not int",
        EIGHT + jsonl(("a", 3)),
    ),
    "half a surrogate pair": labelled(
        "{folder}/f.jsonl, line 9: the field 'text' holds half of a surrogate pair (\\ud800 to "
        "\\udfff), which is not text; write the whole character",
        EIGHT + jsonl(("\ud800", "A")),
    ),
    "brackets without end": labelled(
        "{folder}/f.jsonl, line 9: its brackets are nested too deeply", EIGHT + b"[" * 200_000
    ),
    "number without end": labelled(
        "{folder}/f.jsonl, line 9: holds a number of too many digits",
        EIGHT + b'{"text": ' + b"1" * 5000 + b"}",
    ),
    "dev label unknown": labelled(
        "{folder}/f.jsonl: labels ['new'] do not occur in {data}/toy/train.jsonl; add examples of "
        "them there, or remove their rows here",
        EIGHT + jsonl(("a", "new")),
        "dev",
    ),
    "test label unknown": labelled(
        "{folder}/f.jsonl: labels ['new'] do not occur in {data}/toy/train.jsonl; add examples of "
        "them there, or remove their rows here",
        EIGHT + jsonl(("a", "new")),
        "test",
    ),
    "one label": labelled(
        "{folder}/f.jsonl: training needs at least two labels, found ['A']",
        jsonl(("a", "A"), ("b", "A")),
    ),
    "paper task not there": case(
        "{folder}/acl_arc/train.jsonl does not exist; data_dir must hold a folder acl_arc/ "
        "(leave data_dir out to download it)",
        "task=acl_arc",
        "data_dir={folder}",
        own_task=True,
    ),
    "paper task changed": case(
        "{folder}/acl_arc/train.jsonl is not the published file: its SHA-256 is e3b0c44298fc..., "
        "expected 58eef60d2bbf...; replace it",
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
        "{folder}/none.txt cannot be read (No such file or directory)",
        "auxiliary.dapt.path={folder}/none.txt",
        method="dapt",
    ),
    "a folder": case(
        "corpus {folder}: no files of text", "auxiliary.dapt.path={folder}", method="dapt"
    ),
    "blank": corpus(
        "auxiliary dapt: {folder}/c.txt holds blank lines only", "c.txt", b"\n \n" * 100
    ),
    "without the column": corpus(
        "corpus {folder}/c.jsonl has no field 'text', only 'body'",
        "c.jsonl",
        b'{"body": "a"}\n' * 100,
    ),
    "absurd size": case(
        "auxiliary.size=1e+12 asks for 48000000000000 examples (1e+12 x 48 training examples), "
        "but {data}/corpus.txt has 192",
        "auxiliary.size=1e12",
        method="dapt",
    ),
    "file and hub": case(
        "auxiliary.dapt: path does not apply to an auxiliary task of text=domain, hub=x/y",
        "auxiliary.dapt.hub=x/y",
        method="dapt",
    ),
    "no auxiliary": case(
        "stage tapt of method tapt needs an auxiliary task on the task's own text; e.g. "
        "auxiliary=tapt (images: auxiliary=other_classes)",
        "auxiliary=none",
        method="tapt",
    ),
    "no domain text": case(
        "stage dapt of method dapt needs unlabelled text beside the task's own; e.g. "
        "auxiliary=dapt auxiliary.dapt.path=FILE or FOLDER (images: auxiliary=other_classes)",
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
    "no folder": encoder("encoder folder {folder}/model does not exist", shutil.rmtree),
    "a file": encoder(
        "encoder {folder}/model/config.json is a file; name the folder that holds the saved model",
        without(),
        "encoder.name={folder}/model/config.json",
    ),
    "no config": encoder(
        "encoder folder {folder}/model has no config.json; is it a saved model?",
        without("config.json"),
    ),
    "broken config": encoder(
        "{folder}/model/config.json cannot be read: Expecting property name enclosed in double "
        "quotes: line 1 column 2 (char 1)",
        lambda model: (model / "config.json").write_text("{"),
    ),
    "no tokenizer": encoder(
        "encoder folder {folder}/model has no tokenizer; save it there too", without("tokenizer*")
    ),
    "broken tokenizer": encoder(
        "encoder folder {folder}/model: its tokenizer cannot be read (KeyError: 'added_tokens'); "
        "save it there again",
        lambda model: (model / "tokenizer.json").write_text("{}"),
    ),
    "no weights": encoder(
        "encoder folder {folder}/model holds no weights; save the model there as safetensors "
        "(Transformers' save_pretrained does)",
        without("*.safetensors"),
    ),
    "pickled weights": encoder(
        "encoder folder {folder}/model holds only pytorch_model.bin, a pickle, which may run any "
        "code; save the model there as safetensors (Transformers' save_pretrained does)",
        pickled,
    ),
    "torn weights": encoder(
        "encoder {folder}/model cannot be loaded from {folder}/model: Error while deserializing "
        "header: header too small",
        lambda model: (model / "model.safetensors").write_bytes(b""),
    ),
    "other weights": encoder(
        "encoder folder {folder}/model: its weights lack 21 of the body's 21 parameters (the first "
        "is embeddings.word_embeddings.weight); save the whole model there",
        lambda model: save_file(
            {"x": torch.zeros(1)}, model / "model.safetensors", metadata={"format": "pt"}
        ),
    ),
    "other shapes": encoder(
        "encoder folder {folder}/model: its weights have other shapes than its config.json says; "
        "save both there from the same model",
        wider,
    ),
    "tokenizer of another model": encoder(
        "encoder folder {folder}/model: its tokenizer has 1493 tokens, but its model embeds only "
        "100; save the tokenizer that belongs to the model there",
        lambda model: body(100).save_pretrained(model),
    ),
    "no padding": encoder(
        "encoder folder {folder}/model: its tokenizer has no padding token; set pad_token and save "
        "the tokenizer there again",
        lacking_token("pad_token"),
    ),
    "no mask": encoder(
        "encoder {folder}/model has no mask token, which masked language modelling needs; "
        "use auxiliary=none with method=finetune, or another encoder",
        lacking_token("mask_token"),
        method="tapt",
    ),
    "encoder and decoder": encoder(
        "encoder {folder}/model (t5) has a decoder too; use an encoder, such as BERT or RoBERTa",
        with_decoder,
    ),
    "texts longer than its positions": encoder(
        "task.max_length=41 is more than the 40 tokens that encoder {folder}/model reads; use at "
        "most 40",
        without(),
        "task.max_length=41",
    ),
    "reads images": case(
        "classifier=text needs an encoder of text, but wide_resnet_16_2 is not one; "
        "e.g. encoder=minilm",
        "encoder=wide_resnet",
        "encoder.mean=[0.5]",
        "encoder.std=[0.5]",
    ),
    "reads no images": case(
        "classifier=images needs an encoder of images, but tiny is not one; "
        "use encoder=wide_resnet",
        "classifier=images",
    ),
    "auxiliary longer than its positions": case(
        "auxiliary.tapt.max_length=513: encoder tiny reads at most 512 tokens",
        "auxiliary.tapt.max_length=513",
        method="tapt",
    ),
}

STAGE, META = "method.stages.joint", "meta_tartan"
NUMBERS = {
    "seed": case("seed must be a whole number of at least 0, got -1", "seed=-1"),
    "of a stage": case(
        f"{STAGE}.batch_size must be a whole number from 1 to 1048576, got 0",
        f"{STAGE}.batch_size=0",
        method=META,
    ),
    "of a weighting": case(
        "weighting.eta must be a finite number of at least 0, got 'fast'",
        "weighting.eta=fast",
        method=META,
    ),
    "long texts": case(
        "task.max_length=513: encoder tiny reads at most 512 tokens",
        "task.max_length=513",
    ),
    "shares of tokens": case(
        "auxiliary.tapt.objective: masked and random must not sum to more than 1, got 0.8 and 0.5",
        "auxiliary.tapt.objective.random=0.5",
        method="tapt",
    ),
    "stage without an end": case(
        "method.stages.finetune: give max_steps or max_epochs",
        "method.stages.finetune.max_epochs=null",
    ),
    "more tasks than examples": case(
        f"{STAGE}: sampled=9 tasks cannot share a batch of 8; use a larger batch_size",
        f"{STAGE}.sampled=9",
        method=META,
    ),
}
DEVICES = "trainer: `devices` selected with `CPUAccelerator` should be an int > 0."
STATIC = ("weighting=static",)
SETTINGS = {
    "metric that is none": case(
        "task.metric=acuracy is not one of the metrics; did you mean accuracy?",
        "task.metric=acuracy",
    ),
    "metric of which lower is better": case(
        "task.metric=ece cannot choose the checkpoint: lower values of MulticlassCalibrationError "
        "are better; name a metric of which higher values are better, and ece is still reported",
        "+metrics.ece._target_=torchmetrics.classification.MulticlassCalibrationError",
        "task.metric=ece",
    ),
    "metric class that is none": case(
        "metrics.macro_f1 cannot be imported: No module named 'nowhere'",
        "metrics.macro_f1._target_=nowhere.Metric",
    ),
    "metric argument": case(
        "metrics.macro_f1: Expected argument `average` to be one of ('micro', 'macro', "
        "'weighted', 'none', None), but got best",
        "metrics.macro_f1.average=best",
    ),
    "weighting class that is none": case(
        "weighting cannot be imported: No module named 'nowhere'",
        "weighting._target_=nowhere.Weighting",
        method=META,
    ),
    "stage class that is none": case(
        "module=nowhere.X of a stage cannot be imported: No module named 'nowhere'",
        "method.stages.finetune.module=nowhere.X",
    ),
    "values missing": case(
        "weighting: Missing mandatory value: weighting.values", *STATIC, method="mt_tartan"
    ),
    "values of other tasks": case(
        "weighting: values must name exactly the tasks ['dapt', 'end_task', 'tapt'], but names "
        "['end_task', 'news']; e.g. values={'end_task': 1, 'dapt': 1, 'tapt': 1}, of a run "
        "'weighting.values={end_task: 1, dapt: 1, tapt: 1}'",
        *STATIC,
        "weighting.values={end_task: 1, news: 1}",
        method="mt_tartan",
    ),
    "values all zero": case(
        "weighting: values must not all be zero, nor too large, got {'end_task': 0, 'dapt': 0, "
        "'tapt': 0}",
        *STATIC,
        "weighting.values={end_task: 0, dapt: 0, tapt: 0}",
        method="mt_tartan",
    ),
    "meta weighting without a meta head": case(
        "this weighting needs the meta-gradient, which method=mt_tartan does not compute; "
        "use method=meta_tartan, or another weighting",
        "weighting=meta",
        method="mt_tartan",
    ),
    "meta weighting of a frozen body": case(
        "freeze_body=true leaves nothing for this weighting to weigh; use weighting=uniform, or "
        "freeze_body=false",
        f"{STAGE}.freeze_body=true",
        method=META,
    ),
    "meta head of too few": case(
        f"{STAGE}.meta_head.examples_from=rest needs 41 training examples beside each batch of 8, "
        "but there are only 48; use a smaller batch_size, or examples_from=batch",
        f"{STAGE}.meta_head.examples_from=rest",
        f"{STAGE}.meta_head.examples=41",
        method=META,
    ),
    "patience of a stage that nothing evaluates": case(
        "method.stages.dapt.patience=3: this stage is not evaluated, since it does not train the "
        "end task; leave it null",
        "method.stages.dapt.patience=3",
        method="dapt",
    ),
    "evaluations of a stage that nothing evaluates": case(
        "method.stages.dapt.evaluate_every=10: this stage is not evaluated, since it does not "
        "train the end task; leave it null",
        "method.stages.dapt.evaluate_every=10",
        method="dapt",
    ),
    "accelerator unknown": case(
        "trainer.accelerator must be one of auto, gpu, cpu, cuda, mps, tpu, got 'warp'",
        "trainer.accelerator=warp",
    ),
    "accelerator not there": case(
        "trainer.accelerator=gpu: this machine has none that PyTorch can use; use "
        "trainer.accelerator=cpu, or auto",
        "trainer.accelerator=gpu",
    ),
    "nodes": case(
        "trainer: `num_nodes` must be a positive integer, but got 0.", "+trainer.num_nodes=0"
    ),
    "clipping": case(
        "trainer.gradient_clip_val is not used here; set "
        "method.stages.STAGE.optimisation.clip_norm instead",
        "+trainer.gradient_clip_val=0.5",
    ),
    "accumulation": case(
        "trainer.accumulate_grad_batches is not used here; set micro_batch_size and "
        "method.stages.STAGE.batch_size instead",
        "+trainer.accumulate_grad_batches=4",
    ),
    "fast_dev_run": case(
        "trainer.fast_dev_run is not used here; set +debug=fast instead",
        "+trainer.fast_dev_run=true",
    ),
    "trainer argument": case(
        "there is no option trainer.bogus of lightning.pytorch.Trainer; leave it out (where a file "
        "sets it: '~trainer.bogus')",
        "+trainer.bogus=1",
    ),
    "trainer class that is none": case(
        "trainer cannot be imported: No module named 'nowhere'", "trainer._target_=nowhere.Trainer"
    ),
    "logger class that is none": case(
        "logger.csv cannot be imported: No module named 'nowhere'",
        "logger.csv._target_=nowhere.Logger",
    ),
    "precision taken away": case(
        "trainer.precision is missing; leave out ~trainer.precision", "~trainer.precision"
    ),
    "rates without a logger": case(
        "callbacks.learning_rate_monitor needs a logger for the rates, and logger=none has none; "
        "choose logger=default, or leave the callback out",
        "callbacks=learning_rate_monitor",
        "logger=none",
    ),
    "cache below a file": case(
        "cache_dir={folder}/file/cache: cannot write there (Not a directory); name another folder",
        "cache_dir={folder}/file/cache",
        files={"file": b""},
    ),
    **{
        f"devices {devices}": case(DEVICES, f"trainer.devices={devices}", "trainer.accelerator=cpu")
        for devices in ("many", "-1", "null")
    },
}

ONCE = jsonl(*((f"text {i}", "AR"[i % 2]) for i in range(8)), ("text 8", "rare"))
HELD_OUT = {
    "a label with one example": case(
        "{folder}/t.jsonl: too few examples of 1 label to be in train and in dev, which takes at "
        "least 2 of each: 'rare' has 1; add examples, remove the rows, merge labels, or name a "
        "dev file: task.dev=FILE",
        "task.train={folder}/t.jsonl", "task.dev=null", files={"t.jsonl": ONCE},
    ),
    "a dev split too large for the labels": case(
        "task.dev_share=0.9: of the 8 examples of {folder}/t.jsonl, too few are left for "
        "train: fewer than there are labels (2); lower it, or name a dev file: task.dev=FILE",
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
    assert message == filled(entry.message)
    assert "\n" not in message


def test_a_gzip_file_that_ends_too_early_is_named_with_the_place(data_dir, cache_dir, tmp_path):
    path = tmp_path / "c.txt.gz"
    path.write_bytes(MANY[: len(MANY) // 2])
    options = toy(data_dir, cache_dir, "dapt", f"auxiliary.dapt.path={path}")
    message = message_of(options, tmp_path / "run")
    before, _, line = message.partition(" (line ")  # which, depends on the compressor
    assert before == (
        f"{path} cannot be read: Compressed file ended before the end-of-stream marker was reached"
    )
    assert 1 < int(line.removesuffix(")")) < 20000


def test_a_run_folder_that_cannot_be_written_is_named(data_dir, cache_dir, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    folder = tmp_path / "file" / "run"
    assert message_of(toy(data_dir, cache_dir, "finetune"), folder) == (
        f"hydra.run.dir={folder}: cannot write there (Not a directory); name another folder"
    )


def test_a_logger_that_cannot_be_built_leaves_nothing(data_dir, cache_dir, tmp_path):
    options = toy(data_dir, cache_dir, "finetune", "logger.csv._target_=nowhere.Logger")
    message_of(options, tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.*"))


def test_a_batch_larger_than_the_data_is_a_warning(data_dir, cache_dir, tmp_path, caplog):
    options = toy(data_dir, cache_dir, META, f"{STAGE}.batch_size=50", "auxiliary.size=1")
    with pytest.raises(AssertionError, match="training started"):
        run_experiment(config_of(options), tmp_path)
    said = [r.getMessage() for r in caplog.records if "batch_size" in r.getMessage()]
    assert said == [
        f"{STAGE}.batch_size=50 is more than there are examples (end_task 48, dapt 48, tapt 48), "
        "so that a batch holds some of them several times; a smaller batch_size avoids that"
    ]


def test_a_batch_of_all_the_data_is_none(data_dir, cache_dir, tmp_path, caplog):
    options = toy(data_dir, cache_dir, "tapt", "method.stages.tapt.batch_size=48")
    with pytest.raises(AssertionError, match="training started"):
        run_experiment(config_of(options), tmp_path)
    assert not [r for r in caplog.records if "batch_size" in r.getMessage()]
