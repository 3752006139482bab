"""Classifiers in ONNX predict what the original does, and read no file beside them."""

from __future__ import annotations

import shutil

import numpy as np
import onnx
import pandas as pd
import pytest
import torch

from tartan.encoders.onnx_model import ONNX, write_onnx
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.text_encoder import TextEncoder
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.runs.predictor import Predictor
from tests.encoders.bodies import random_body
from tests.predict.conftest import LABELS, TEXTS, classifier  # noqa: F401
from tests.programs import called_for_text


def probabilities(folder, batch_size=32):
    own = load_classifier(folder)
    return Predictor(own, torch.device("cpu"), 32, batch_size).predict(TEXTS)


def exported(folder, target):
    shutil.copytree(folder, target)
    own = load_classifier(folder)
    body = getattr(own.model, "body", own.model)
    body.config.id2label = dict(enumerate(own.labels))
    body.config.save_pretrained(target)
    write_onnx(own.model, body, "token_type_ids" in own.tokenizer.model_input_names, target / ONNX)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "modernbert", "deberta-v2"])
def test_batches_of_any_size_and_length_have_the_same_probabilities(tmp_path, kind):
    encoder, folder = TextEncoder(kind, random_body(kind), letter_pair_tokenizer()), tmp_path / kind
    encoder.save_classifier(encoder.new_classifier_head(3, 0.1), LABELS, folder, 32)
    target = exported(folder, tmp_path / "onnx")
    for batch_size in (1, 5):
        found, expected = probabilities(target, batch_size), probabilities(folder, batch_size)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_file_that_names_another_is_not_read(classifier, tmp_path):  # noqa: F811
    folder = shutil.copytree(classifier, tmp_path / "hostile")
    (tmp_path / "secret").write_bytes(bytes(400))
    weight = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[100])
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../secret")
    output = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, [100])
    nodes = [onnx.helper.make_node("Identity", ["w"], ["logits"])]
    graph = onnx.helper.make_graph(nodes, "hostile", [], [output], [weight])
    (folder / ONNX).write_bytes(onnx.helper.make_model(graph).SerializeToString())
    with pytest.raises(UserError):
        load_classifier(folder)


@pytest.mark.slow
def test_a_run_is_exported_and_predicted_or_refused_for_what_it_loses(
    tmp_path, data_dir, toy_options, cache_dir
):
    common, method = f"cache_dir={cache_dir}", ("method=finetune", "auxiliary=none")
    folder = "hydra.run.dir=run"
    done = called_for_text("src.run", *toy_options, *method, folder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    def call(program, *options):
        return called_for_text(f"src.{program}", *options, cwd=tmp_path)

    refused = call("export", "model=run", "format=onnx-int8", "max_loss=-1", common)
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert not (tmp_path / "run" / "classifier-onnx-int8").exists()
    for kind, most in (("onnx", 1e-5), ("onnx-int8", 0.05)):
        done = call("export", "model=run", f"format={kind}", "max_loss=1", common)
        assert done.returncode == 0, done.stderr
        written = tmp_path / "run" / f"classifier-{kind}"
        difference = probabilities(written) - probabilities(tmp_path / "run")
        assert abs(difference).max() <= most
        options = (f"model={written}", f"input={data_dir}/toy/test.jsonl", f"output={kind}.csv")
        assert call("predict", *options).returncode == 0
    assert (tmp_path / "onnx.csv").read_text().count("\n") > 10
    assert "exists already" in call("export", "model=run", common).stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["multi_label", "regression"])
def test_other_kinds_of_labels_are_exported_too(kind, tmp_path, cache_dir):
    labels = ("a", "a;b", "", "b") if kind == "multi_label" else (1, 20, 3.5, -2)
    rows = [f"number {i} of {'red' if i % 2 else 'blue'} things,{labels[i % 4]}" for i in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *rows]))
    given = ["+experiment=custom_finetune", f"task={kind}", "task.train=t.csv", "encoder=tiny"]
    given += ["task.separator=';'"] * (kind == "multi_label")
    given += ["max_steps=4", "task.max_length=32", f"cache_dir={cache_dir}", "hydra.run.dir=run"]
    commands = [["run", *given, "trainer.enable_progress_bar=false"], ["export", "model=run"]]
    commands += [
        ["predict", f"model={model}", "input=t.csv", f"output={name}.csv"]
        for name, model in (("before", "run"), ("after", "run/classifier-onnx"))
    ]
    for program, *options in commands:
        done = called_for_text(f"src.{program}", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    before, after = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("before", "after"))
    pd.testing.assert_frame_equal(before, after, atol=1e-4)
