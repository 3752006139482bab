"""Training on a folder that `src.build_corpus` wrote: mapped, chosen, tokenised as it is read."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest

from tartan.data import text_auxiliary
from tartan.data.batches import BatchNeeds, StepBatches, TaskExamples
from tartan.data.corpus import load_corpus
from tartan.data.file_task import FileTask
from tartan.data.prepared import AuxiliaryContext, AuxiliarySettings
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.encoders.tiny import TinyEncoder
from tartan.errors import UserError
from tartan.objectives.masked_lm import MaskedLM
from tests.corpus.made_up import built, texts_of, write_shard


def load(folder):
    return load_corpus(folder, "text", folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """300 examples in three shards, and a fourth that is empty after leaving out repeats."""
    root = tmp_path_factory.mktemp("corpus")
    for shard in range(3):
        texts = [f"text {n} of {n % 7} stones" for n in range(shard * 100, shard * 100 + 100)]
        write_shard(root / "in" / f"{shard}.jsonl.gz", [{"text": text} for text in texts])
    shutil.copy(root / "in" / "0.jsonl.gz", root / "in" / "3.jsonl.gz")
    built(root / "in", root / "out")
    return root / "out"


def test_its_texts_are_all_there_in_order_and_stay_on_the_disk(folder):
    before = pa.total_allocated_bytes()
    corpus = load(folder)
    assert corpus.texts["text"][:] == texts_of(folder)
    assert len(corpus.texts) == 300
    assert not corpus.has_blanks
    assert len(corpus.texts.cache_files) == 3
    assert pa.total_allocated_bytes() - before < 1000


def damaged(folder, tmp_path, change):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    change(copy)
    return copy


def edit(**changes):
    def change(copy):
        path = copy / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda copy: (copy / "shard-00001-of-00004.arrow").unlink(), "00001-of-00004.* missing"),
        (
            lambda copy: (copy / "shard-00002-of-00004.arrow").write_bytes(b"cut"),
            "00002-of-00004.* missing or cut",
        ),
        (lambda copy: (copy / "manifest.json").write_text("{"), r"manifest\.json is damaged"),
        (edit(layout=99), "is of layout 99, this program reads 1"),
        (
            lambda copy: (
                (copy / "manifest.json").unlink(),
                (copy / "building").mkdir(),
                (copy / "building" / "begun.json").touch(),
            ),
            "is not finished; run the command that builds it again",
        ),
        (
            lambda copy: (copy / "shard-00001-of-00004.arrow").write_bytes(
                bytes((copy / "shard-00001-of-00004.arrow").stat().st_size)
            ),
            "is damaged",
        ),
    ],
)
def test_a_damaged_folder_is_an_error_of_one_line(folder, tmp_path, change, message):
    with pytest.raises(UserError, match=message) as caught:
        load(damaged(folder, tmp_path, change))
    assert "\n" not in str(caught.value)


def rows_of(folder, data_dir, cache_dir, size="all"):
    paths = {split: str(data_dir / "toy" / f"{split}.jsonl") for split in ("train", "dev", "test")}
    task = FileTask(name="toy", metric="macro_f1", max_length=12, **paths).load()
    around = AuxiliaryContext(task, TinyEncoder().load(), AuxiliarySettings(size), cache_dir)
    return TextAuxiliary(objective=MaskedLM(), path=str(folder)).examples("dapt", around).rows


def flat(batch):
    return [
        {name: value.tolist() for name, value in part.inputs.items()}
        for part in batch.micro_batches
    ]


@pytest.mark.parametrize("size", ["all", 2])
def test_batches_are_the_same_tokenised_ahead_and_as_read(
    folder, data_dir, tmp_path, monkeypatch, size
):
    collate = MaskedLM().collate(TinyEncoder().load(), 4)
    found = []
    for ahead in (1000, 0):
        monkeypatch.setattr(text_auxiliary, "TOKENISED_AHEAD", ahead)
        cache = tmp_path / str(ahead)
        rows = rows_of(folder, data_dir, cache, size)
        assert (cache / "tokenised").exists() == bool(ahead)
        task = TaskExamples(rows, collate, 7)
        steps = StepBatches({"dapt": task}, None, 50, 0, BatchNeeds("joint", ("dapt",)))
        found.append([flat(steps[step].tasks["dapt"]) for step in (0, 1, 42, 49)])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "file", ["../shard.arrow", "/etc/shard.arrow", "a\\b.arrow", "manifest.json"]
)
def test_a_manifest_that_names_a_file_elsewhere_is_refused(folder, tmp_path, file):
    def change(copy):
        manifest = json.loads((copy / "manifest.json").read_text())
        manifest["shards"][0]["file"] = file
        (copy / "manifest.json").write_text(json.dumps(manifest))

    with pytest.raises(UserError, match=r"manifest\.json is damaged"):
        load(damaged(folder, tmp_path, change))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"other": ["a"]}), "has no column='text'"),
        (pa.table({"text": [1]}), "holds int64, not text"),
        (None, "is damaged"),
    ],
)
def test_shards_of_a_stranger_hold_texts(folder, tmp_path, table, said):
    def change(copy):
        manifest = json.loads((copy / "manifest.json").read_text())
        shards = manifest["shards"][:1] if table is not None else []
        for shard in shards:
            path = str(copy / shard["file"])
            with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
            shard["bytes"] = (copy / shard["file"]).stat().st_size
        (copy / "manifest.json").write_text(json.dumps(manifest | {"shards": shards}))

    with pytest.raises(UserError, match=said) as caught:
        load(damaged(folder, tmp_path, change))
    assert "\n" not in str(caught.value)


def test_a_shard_that_is_a_link_out_of_the_folder_is_refused(folder, tmp_path):
    def change(copy):
        shard = copy / "shard-00001-of-00004.arrow"
        shard.rename(tmp_path / "other.arrow")
        shard.symlink_to(tmp_path / "other.arrow")

    with pytest.raises(UserError, match=r"00001-of-00004\.arrow is a link to a file elsewhere"):
        load(damaged(folder, tmp_path, change))
