"""A user's own spreadsheet, from the command line to the exported classifier."""

from __future__ import annotations

import csv
import gzip
import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from tartan.data.columns import Columns
from tartan.data.labelled import read_labelled
from tartan.data.table.open import open_table
from tartan.runs.prepare import enabled_stages, prepare
from tartan.runs.run import run_experiment
from tests.in_process import config_of

pytestmark = pytest.mark.slow

WORDS = {"apple": "Fruit", "river": "Water", "stone": "Rock"}


@pytest.fixture
def own(tmp_path):
    """A labelled spreadsheet as Excel writes it, unlabelled texts, and files of dev and test."""

    def rows(first, count):
        names = list(WORDS)
        numbers = range(first, first + count)
        return [[f'a "{names[i % 3]}", number {i}\nand more', WORDS[names[i % 3]]] for i in numbers]

    def write(path, lines, separator=";"):
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file, delimiter=separator).writerows([["Comment", "Topic"], *lines])

    write(tmp_path / "labels.csv", rows(0, 60))
    write(tmp_path / "dev.csv", rows(100, 12), ",")
    write(tmp_path / "test.tsv", rows(200, 12), "\t")
    (tmp_path / "texts").mkdir()
    for name in ("a.txt", "b.txt"):
        texts = "".join(f"the {word} of {name} {i}\n" for word in WORDS for i in range(20))
        (tmp_path / "texts" / name).write_text(texts)
    (tmp_path / "texts" / "c.txt.gz").write_bytes(gzip.compress(b"one more\n"))
    return tmp_path


@pytest.fixture
def options(cache_dir):
    """What makes a run one of seconds."""
    return [
        "encoder=tiny", f"cache_dir={cache_dir}", "max_steps=3", "task.max_length=32",
        "trainer.enable_progress_bar=false", "trainer.precision=32-true", "micro_batch_size=8",
    ]  # fmt: skip


def prepared(*options):
    config = config_of(options)
    return prepare(config, enabled_stages(config))


@pytest.mark.longest
def test_a_spreadsheet_and_a_folder_of_texts_become_a_classifier(own, options, run_cli):
    """As a user calls it, in the folder where the files are."""
    given = ["+experiment=custom", "task.train=labels.csv", "auxiliary.dapt.path=texts/"]
    finished = run_cli(*given, *options)
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    warnings = [line.split("WARNING ")[1] for line in lines if "WARNING " in line]
    assert warnings == [
        "task own: labels.csv: texts are read from column 'Comment', labels from 'Topic' (others: "
        "task.text=COLUMN task.label=COLUMN)"
    ]
    (folder,) = (own / "runs" / "custom").iterdir()
    result = json.loads((folder / "result.json").read_text())
    assert [result[split]["whole"]["examples"] for split in ("dev", "test")] == [12, 12]
    assert result["labels"] == ["Fruit", "Rock", "Water"]
    assert result["train"] == {"examples": 36, "labels": dict.fromkeys(result["labels"], 12)}
    assert set(result["auxiliaries"]) == {"dapt", "tapt"}
    assert result["auxiliaries"]["dapt"]["examples"] == 121
    assert result["data"]["columns"] == {"text": "Comment", "label": "Topic", "text_pair": None}

    with (folder / "splits.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    examples = read_labelled(open_table(own / "labels.csv"), Columns("Comment", "Topic"))
    assert [(row["label"], int(row["line"])) for row in rows] == [
        (example.label, example.number) for example in examples
    ]
    counts = {split: sum(row["split"] == split for row in rows) for split in ("dev", "test")}
    assert counts == {"dev": 12, "test": 12}
    held = [row["line"] for row in rows if row["split"] == "test"]
    assert result["data"]["split"]["test"]["lines"] == ", ".join(held)
    assert f" {folder.relative_to(own)}/splits.csv" in finished.stdout


def test_labels_alone_are_enough(own, options, caplog):
    found = prepared("+experiment=custom", f"task.train={own}/labels.csv", *options)
    assert list(found.auxiliaries) == ["tapt"]
    assert [len(getattr(found.splits, split)) for split in ("train", "dev", "test")] == [36, 12, 12]
    said = [r.getMessage() for r in caplog.records if r.getMessage().startswith("auxiliary")]
    assert said == ["auxiliary dapt is left out: no text was given (auxiliary.dapt.path)"]


def test_a_run_without_a_test_split_trains_on_its_examples_too(own, options, tmp_path):
    given = ["+experiment=custom", f"task.train={own}/labels.csv", "task.test_share=0"]
    result = run_experiment(config_of([*given, *options]), tmp_path / "run")
    assert not result.is_tested
    assert (result.train.examples, result.dev.whole.examples) == (48, 12)
    assert list(result.data["split"]) == ["source", "train", "dev"]
    assert [baseline.test for baseline in result.baselines] == [None]
    assert (tmp_path / "run" / "classifier" / "config.json").is_file()
    card = (tmp_path / "run" / "classifier" / "README.md").read_text(encoding="utf-8")
    assert "| dev |" in card
    assert "| test |" not in card
    with (tmp_path / "run" / "splits.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {row["split"] for row in csv.DictReader(file)} == {"train", "dev"}


def test_a_size_that_the_texts_do_not_have_takes_them_all(own, options):
    given = ["+experiment=custom", f"task.train={own}/labels.csv", f"task.domain={own}/texts"]
    sizes = {}
    for size in ("10", "2", "all"):
        _, examples = prepared(*given, *options, f"auxiliary.size={size}").auxiliaries["dapt"]
        sizes[size] = (examples.size, len(examples.rows))
    assert sizes == {"10": (None, 121), "2": (2, 72), "all": (None, 121)}


def test_weights_are_given_by_labels_of_any_letters_and_a_list_is_shown_by_label(
    tmp_path, options, caplog
):
    rows = [{"text": f"text {i}", "label": ("Bär", "Öl")[i % 2]} for i in range(20)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["task=files", f"task.train={tmp_path}/t.jsonl", "method=finetune", *options]
    by_name = 'classifier.class_weights="{Öl: 3, Bär: 1}"'
    found = prepared(*given, by_name)
    assert found.classification.class_weights == pytest.approx((0.5, 1.5))
    assert not [r for r in caplog.records if "class_weights" in r.getMessage()]
    listed = prepared(*given, "classifier.class_weights=[1,3]")
    assert listed.classification.class_weights == found.classification.class_weights
    (said,) = [r.getMessage() for r in caplog.records if "class_weights" in r.getMessage()]
    assert said == "classifier.class_weights by label: 'Bär' 1, 'Öl' 3"


def test_class_weights_and_a_chosen_metric_go_through_a_run(own, options, tmp_path):
    """The evaluation's loss stays unweighted: with the body frozen at lr 0 it does not change."""
    given = ["+experiment=custom_finetune", f"task.train={own}/labels.csv", *options]
    still = [f"method.stages.finetune.optimisation.{name}_lr=0" for name in ("body", "end_head")]
    results = [
        run_experiment(config_of([*given, *still, *more]), tmp_path / str(number)).as_json()
        for number, more in enumerate(
            ([], ["classifier.class_weights=[1,20,3]", "task.metric=auroc"])
        )
    ]
    losses = [result["test"]["whole"]["metrics"]["loss"] for result in results]
    assert losses[0] == losses[1]
    assert results[1]["metric"] == "auroc"
    assert 0 <= results[1]["test"]["whole"]["metrics"]["auroc"] <= 1
    assert "auroc" not in results[0]["test"]["whole"]["metrics"]


def test_a_classifier_of_pairs_is_that_of_transformers(tmp_path, options):
    lines = [["first", "second", "label"]]
    lines += [[f"a {i}", f"{'a' if i % 2 else 'b'} {i}", i % 2] for i in range(60)]
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    columns = [f"task.train={tmp_path}/pairs.csv", "task.text=first", "task.text_pair=second"]
    config = config_of(["+experiment=custom", *columns, *options])
    found = prepare(config, enabled_stages(config))
    assert "token_type_ids" in found.splits.train.column_names
    assert "token_type_ids" in found.auxiliaries["tapt"][1].rows.column_names
    result = run_experiment(config, tmp_path / "run").as_json()
    folder = tmp_path / "run" / "classifier"
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    end_task = found.end_task
    confusion = [[0, 0], [0, 0]]
    losses = []
    for first, second, label in zip(
        end_task.test.texts, end_task.test.pairs, end_task.test.labels, strict=True
    ):
        with torch.no_grad():
            logits = model(**tokenizer(first, second, return_tensors="pt")).logits[0]
        confusion[label][int(logits.argmax())] += 1
        losses.append(-logits.log_softmax(0)[label])
    assert result["test"]["whole"]["confusion"] == confusion
    loss = result["test"]["whole"]["metrics"]["loss"]
    assert loss == pytest.approx(float(torch.stack(losses).mean()), abs=1e-5)
