"""`classifier/README.md` says what the run folder knows."""

from __future__ import annotations

import json
import re

import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from omegaconf import OmegaConf

from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.runs.card import write_card
from tartan.runs.result import Result
from tests.encoders.bodies import random_body
from tests.in_process import recorded_run, toy


@pytest.fixture(scope="module")
def meta_run(data_dir, cache_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("meta") / "run"
    return recorded_run(toy(data_dir, cache_dir, "meta_tartan"), folder)


def card_of(run) -> ModelCard:
    return ModelCard((run.folder / "classifier" / "README.md").read_text(encoding="utf-8"))


def written_again(run, folder, result, config=None) -> str:
    """The card of a run whose result or config is another one."""
    (folder / "classifier").mkdir()
    config = OmegaConf.load(run.folder / "config.yaml") if config is None else config
    write_card(Result.model_validate(result), config, folder / "classifier")
    return (folder / "classifier" / "README.md").read_text(encoding="utf-8")


def test_its_metadata_and_words_are_the_results(meta_run):
    card = card_of(meta_run)
    assert (card.data.pipeline_tag, card.data.library_name) == (
        "text-classification",
        "transformers",
    )
    (baseline,) = meta_run.result["baselines"]
    assert f"on dev, {baseline['test']['macro_f1']:.4f} on test." in card.text
    assert "Few test examples (below 20)" in card.text
    assert "None" not in re.sub(r"```.*?```", "", card.text, flags=re.DOTALL)


def test_names_stay_in_their_place_and_the_home_folder_is_not_published(
    meta_run, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", "/home/jane_doe")
    config = OmegaConf.load(meta_run.folder / "config.yaml")
    config.task.name, config.task.train = "a\n```\n# Title", "/home/jane_doe/labels.csv"
    changed = json.loads(json.dumps(meta_run.result))
    changed |= {"encoder": "/home/jane_doe/encoder", "task": "a`<b>x</b>", "method": "m`n"}
    changed["auxiliaries"]["dapt"]["source"] = "/home/jane_doe/texts.txt"
    text = written_again(meta_run, tmp_path, changed, config)
    assert r"The task is a\`&lt;b&gt;x&lt;/b&gt;." in text
    assert "with the method\n" + r"m\`n" in text
    assert "jane" not in text
    assert r"\~/texts.txt" in text
    (block,) = re.findall(r"```+yaml\n(.*?)\n```+", text, re.DOTALL)
    task = yaml.safe_load(block)["task"]
    assert (task["name"], task["train"]) == (config.task.name, "~/labels.csv")


def test_the_lines_for_a_classifier_in_parts_work(data_dir, cache_dir, tmp_path, capsys):
    random_body("bigbird").save_pretrained(tmp_path / "encoder")
    letter_pair_tokenizer().save_pretrained(tmp_path / "encoder")
    options = ["encoder=huggingface", f"encoder.name={tmp_path}/encoder", "max_steps=1"]
    run = recorded_run(toy(data_dir, cache_dir, "finetune", *options), tmp_path / "run")
    card = card_of(run)
    assert "task weights" not in card.text.lower()
    (block,) = re.findall(r"```python\n(.*?)```", card.text, re.DOTALL)
    exec(block.replace("FOLDER", str(run.folder / "classifier")), {})
    module = run.tested_module.eval()
    encoded = letter_pair_tokenizer()(["a text"], return_tensors="pt")
    inputs = {name: encoded[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        logits = module.heads["end_task"](module.body(**inputs).last_hidden_state[:, 0])
    label = ["A", "R", "S"][int(logits.argmax())]
    assert capsys.readouterr().out.strip() == f"['{label}'] {logits.softmax(1)}"
