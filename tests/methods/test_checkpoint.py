"""A checkpoint makes its module again, and holds nothing but tensors and plain values."""

from __future__ import annotations

import pickle
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertModel

from tartan import TartanData
from tartan.core.weighting.fixed import Static
from tartan.data.columns import Columns, read_trained_columns
from tartan.data.given import encoder_of
from tartan.encoders.description import describe_encoder, encoder_from_description
from tartan.encoders.saved_classifier import load_classifier
from tartan.encoders.tiny import letter_pair_tokenizer
from tartan.errors import UserError
from tartan.methods import ContinuedPretraining, FineTuning, MetaTartan, MTTartan
from tartan.methods.optimisation import Optimisation
from tartan.methods.plain import node_of, rebuilt, subclass_of
from tartan.predict.predictor import Predictor
from tests.conftest import DEVICE
from tests.in_process import same
from tests.local_server import serving
from tests.methods.lightning import fitted, state_of, toy_data, trainer

TEXTS = ["red apple", "an old and cold river", "stone"]


@pytest.fixture(scope="module")
def trained(data_dir, cache_dir, tmp_path_factory):
    """A module after three steps, its data, and its checkpoint."""
    folder = tmp_path_factory.mktemp("trained")
    data = toy_data(data_dir, cache_dir)
    module = MetaTartan.for_data(data, lr=2e-3, eta=0.3)
    running = trainer(folder, max_steps=3)
    running.fit(module, datamodule=data)
    path = Path(running.checkpoint_callback.best_model_path)
    return module.eval(), data, path


def test_a_checkpoint_alone_gives_the_same_module(trained, tmp_path, monkeypatch):
    module, _, path = trained
    monkeypatch.chdir(tmp_path)
    random = torch.random.get_rng_state()
    again = MetaTartan.load_from_checkpoint(path).eval()
    assert torch.equal(random, torch.random.get_rng_state())
    assert same(state_of(module), state_of(again))
    assert torch.equal(module(TEXTS), again(TEXTS))
    assert again.labels == module.labels == ("A", "R", "S")
    assert again.task_weights == module.task_weights
    assert (again.weighting.eta, again.optimisation) == (0.3, module.optimisation)


def test_a_checkpoint_holds_tensors_and_plain_values_only(trained):
    content = torch.load(trained[2], weights_only=True)  # refuses anything else
    assert content["hyper_parameters"]["labels"] == ["A", "R", "S"]


def test_a_module_that_was_loaded_trains_on_as_the_one_that_was_saved(
    trained, data_dir, cache_dir, tmp_path
):
    ends = []
    for load in (False, True):
        data = toy_data(data_dir, cache_dir)
        made = MetaTartan.load_from_checkpoint(trained[2]) if load else None
        module = made or MetaTartan.for_data(data, lr=2e-3, eta=0.3)
        more = {"ckpt_path": trained[2], "enable_checkpointing": False}
        fitted(module, data, tmp_path, max_steps=6, **more)
        ends.append(state_of(module))
    assert same(*ends)


@pytest.mark.parametrize("kind", [FineTuning, MTTartan, ContinuedPretraining])
def test_every_method_comes_back(data_dir, cache_dir, tmp_path, kind):
    data = toy_data(data_dir, cache_dir)
    module = kind.for_data(data, lr=1e-3)
    running = trainer(tmp_path, max_steps=1)
    running.fit(module, datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    again = kind.load_from_checkpoint(tmp_path / "here.ckpt")
    assert same(state_of(module), state_of(again))
    assert [task.objective for task in again.tasks] == [task.objective for task in module.tasks]


@pytest.mark.parametrize("kind", [FineTuning, MTTartan, ContinuedPretraining])
def test_a_checkpoint_of_another_method_names_its_class(trained, kind):
    with pytest.raises(UserError, match=r"tapt, dapt, .*; use MetaTartan\.load_from_checkpoint"):
        kind.load_from_checkpoint(trained[2])


def test_numpys_numbers_are_stored_as_pythons(data_dir, cache_dir, tmp_path):
    third = np.float64(1 / 3)
    given = partial(Static, values=dict.fromkeys(("end_task", "tapt", "dapt"), third))
    data = toy_data(data_dir, cache_dir, class_weights={"A": np.float64(2), "R": 1.0, "S": 1.0})
    for rates in ({"lr": third}, {"optimisation": Optimisation(body_lr=third)}):
        module = MTTartan.for_data(data, weighting=given, **rates)
        torch.save(dict(module.hparams), tmp_path / "here.pt")
        again = torch.load(tmp_path / "here.pt", weights_only=True)
        assert again["optimisation"]["body_lr"] == 1 / 3
        assert again["weighting"]["values"]["dapt"] == 1 / 3


def test_predictions_are_the_logits_of_forward(trained, tmp_path):
    module, data, _ = trained
    with torch.no_grad():
        logits = module(data.prepared.end_task.test.texts)
    running = trainer(tmp_path)
    found = running.predict(module, datamodule=data)
    assert torch.allclose(
        torch.cat([part["probabilities"] for part in found]), logits.softmax(1), atol=1e-6
    )
    labels = [label for part in found for label in part["label"]]
    assert labels == [module.labels[i] for i in logits.argmax(1).tolist()]
    (own,) = running.predict(module, torch.utils.data.DataLoader(TEXTS, batch_size=3))
    assert torch.allclose(own["probabilities"], module(TEXTS).softmax(1), atol=1e-6)


def test_a_loader_of_ones_own_needs_texts_and_labels_only(trained, tmp_path):
    module, data, _ = trained
    test = data.prepared.end_task.test
    rows = [
        {"text": text, "label": module.labels[label]}
        for text, label in zip(test.texts, test.labels, strict=True)
    ]
    loader = torch.utils.data.DataLoader(rows, batch_size=7)
    running = trainer(tmp_path)
    (own,) = running.test(module, loader, verbose=False)
    (ours,) = running.test(module, datamodule=data, verbose=False)
    assert own == pytest.approx({k: v for k, v in ours.items() if "unseen" not in k}, abs=1e-6)
    unknown = torch.utils.data.DataLoader([{"text": "a", "label": "Q"}])
    with pytest.raises(UserError, match=r"label 'Q' is not one of those trained on.*'A'"):
        running.test(module, unknown, verbose=False)


def test_save_pretrained_is_what_transformers_loads(trained, tmp_path):
    module, _, _ = trained
    module.save_pretrained(tmp_path / "classifier")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "classifier").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "classifier")
    with torch.no_grad():
        theirs = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
        assert torch.allclose(theirs, module(TEXTS), atol=1e-5)
    assert model.config.id2label == {0: "A", 1: "R", 2: "S"}


@pytest.mark.parametrize("loaded", [False, True])
def test_a_classifier_knows_its_columns_and_how_its_tokenizer_cuts(loaded, cache_dir, tmp_path):
    rows = [{"a": f"first {i}", "q": f"second {i}", "text": "other", "y": "no" if i % 2 else "yes"}
            for i in range(20)]  # fmt: skip
    encoder = encoder_of("tiny")
    encoder.tokenizer.truncation_side = "left"
    columns = {"text": "a", "text_pair": "q", "label": "y"}
    data = TartanData(rows, **columns, encoder=encoder, max_length=16, cache_dir=cache_dir)
    module = FineTuning.for_data(data, lr=1e-3)
    if loaded:
        running = trainer(tmp_path, max_steps=1)
        running.fit(module, datamodule=data)
        encoder.tokenizer("x")  # whose call sets other options
        running.save_checkpoint(tmp_path / "here.ckpt")
        module = FineTuning.load_from_checkpoint(tmp_path / "here.ckpt")
    module.eval().save_pretrained(tmp_path / "classifier")
    assert read_trained_columns(tmp_path / "classifier") == Columns("a", "", "q")
    predictor = Predictor(load_classifier(tmp_path / "classifier"), DEVICE, 4, 16)
    text = "first " * 20 + "end"
    expected = module([(text, "second")]).softmax(1).detach().numpy()
    np.testing.assert_allclose(predictor.predict([text], ["second"]), expected, atol=1e-5)


def test_a_model_with_its_tokenizer_is_trained_in_place_and_comes_back(
    data_dir, cache_dir, tmp_path
):
    tokenizer = letter_pair_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32,
    )  # fmt: skip
    body = BertModel(config)
    before = body.embeddings.word_embeddings.weight.detach().clone()
    data = toy_data(data_dir, cache_dir, encoder=(body, tokenizer))
    module = MTTartan.for_data(data, lr=1e-3)
    running = trainer(tmp_path, max_steps=2)
    running.fit(module, datamodule=data)
    assert module.body is body
    assert not torch.equal(before, body.embeddings.word_embeddings.weight)
    running.save_checkpoint(tmp_path / "here.ckpt")
    again = MTTartan.load_from_checkpoint(tmp_path / "here.ckpt")
    with torch.no_grad():
        assert torch.equal(again.eval()(TEXTS), module.eval()(TEXTS))


def test_a_checkpoint_takes_the_encoders_that_data_take(trained):
    module, _, path = trained
    given = (deepcopy(module.encoder.body), module.encoder.tokenizer)
    assert MetaTartan.load_from_checkpoint(path, encoder=given).body is given[0]
    assert MetaTartan.load_from_checkpoint(path, encoder="tiny").encoder.name == "tiny"


def test_an_argument_that_no_module_has_is_named_with_what_has_it(trained):
    with pytest.raises(
        UserError, match=r"'lr'; arguments are those of MetaTartan, .*optimisation="
    ):
        MetaTartan.load_from_checkpoint(trained[2], lr=1)


def test_a_file_that_is_no_checkpoint_is_one_line(tmp_path):
    (tmp_path / "bad.ckpt").write_bytes(b"abc")
    with pytest.raises(UserError, match=r"bad\.ckpt is not a checkpoint, or is damaged"):
        MetaTartan.load_from_checkpoint(tmp_path / "bad.ckpt")


def test_texts_may_be_given_as_a_loader_gives_them(trained):
    module, *_ = trained
    assert torch.equal(module({"text": TEXTS}), module(TEXTS))
    pairs = {"text": TEXTS, "text_pair": TEXTS}
    assert torch.equal(module(pairs), module(list(zip(TEXTS, TEXTS, strict=True))))


def test_pretraining_predicts_nothing(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    module = ContinuedPretraining.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match="nothing to evaluate or predict"):
        trainer(tmp_path).predict(module, datamodule=data)
    loader = DataLoader([{"text": "a", "label": "R"}], batch_size=1)
    with pytest.raises(UserError, match="evaluated on the held-out texts of its data alone"):
        trainer(tmp_path).validate(module, loader, verbose=False)


def test_rows_tuples_data_sets_and_files_give_the_same_module(data_dir, cache_dir):
    import datasets

    files = toy_data(data_dir, cache_dir)
    task = files.prepared.end_task

    def rows(split):
        own = getattr(task, split)
        return [(text, task.labels[i]) for text, i in zip(own.texts, own.labels, strict=True)]

    dev = [{"text": text, "label": label} for text, label in rows("dev")]
    texts = (data_dir / "corpus.txt").read_text().split("\n")[:-1]
    given = TartanData(
        rows("train"), dev, datasets.Dataset.from_list(dev),
        auxiliaries={"tapt": "task", "dapt": texts}, encoder="tiny", batch_size=8,
        max_length=32, cache_dir=cache_dir,
    )  # fmt: skip
    modules = [MTTartan.for_data(data, lr=1e-3) for data in (files, given)]
    assert same(*map(state_of, modules))
    steps = [data.steps(m.batch_needs) for data, m in zip((files, given), modules, strict=True)]
    for task_name in modules[0].heads:
        ours, theirs = (
            part.tasks[task_name].micro_batches[0].inputs for part in (steps[0][3], steps[1][3])
        )
        assert torch.equal(ours["input_ids"], theirs["input_ids"])


@pytest.mark.parametrize(
    "target",
    ["os.system", "builtins.eval", "torch.nn.Linear", "transformers.AutoModel.from_pretrained",
     "tartan.encoders.base.frozen", "tartan.core.weighting.meta.Nothing", "", "Meta"],
)  # fmt: skip
def test_a_checkpoint_names_no_other_classes_than_it_may(target):
    with pytest.raises(UserError, match=r"weighting: .*not a class that can stand here"):
        rebuilt({"_target_": target}, subclass_of(torch.nn.Module), "weighting")


def test_a_class_with_arguments_is_stored_and_comes_back(data_dir, cache_dir):
    data = toy_data(data_dir, cache_dir)
    values = {"end_task": 2.0, "tapt": 1.0, "dapt": 1.0}
    module = MTTartan.for_data(data, lr=1e-3, weighting=partial(Static, values=values))
    assert module.hparams["weighting"]["values"] == values
    assert module.weighting.alpha.tolist() == [0.5, 0.25, 0.25]
    with pytest.raises(UserError, match="give its class"):
        node_of(Static(["a"], {"a": 1.0}))

    class Local(Static):
        pass

    with pytest.raises(UserError, match=r"Local is defined in a function.*module level"):
        node_of(Local)


def test_a_checkpoint_brings_no_code_and_no_foreign_kernels(data_dir, cache_dir):
    description = describe_encoder(toy_data(data_dir, cache_dir).prepared.encoder)
    for changes in ({"auto_map": {"AutoModel": "own.Model"}, "model_type": "unheard_of"},
                    {"attn_implementation": "somebody/kernels"}):  # fmt: skip
        inner = description["description"]
        changed = description | {"description": {**inner, "config": {**inner["config"], **changes}}}
        with pytest.raises(UserError):
            encoder_from_description(changed)
    assert encoder_from_description(description).name == "tiny"
    for kind in ("os.system", "tartan.encoders.pretrained.local_or_cached", "tartan.none.None", ""):
        with pytest.raises(UserError, match=r"pass it: load_from_checkpoint\(PATH, encoder=...\)"):
            encoder_from_description(description | {"kind": kind})


class Malicious:
    def __init__(self, canary):
        self.canary = str(canary)

    def __reduce__(self):
        return (Path.touch, (Path(self.canary),))


@pytest.mark.parametrize("where", ["file", "address"])
def test_nothing_in_a_checkpoint_is_run_when_a_module_is_made_of_it(
    trained, tmp_path, monkeypatch, where
):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "hub"))
    content = torch.load(trained[2], weights_only=True)
    torch.save(content | {"more": Malicious(tmp_path / "canary")}, tmp_path / "a.ckpt")
    with serving(tmp_path) as address:
        given = tmp_path / "a.ckpt" if where == "file" else f"{address}/a.ckpt"
        with pytest.raises(pickle.UnpicklingError):
            MetaTartan.load_from_checkpoint(given, weights_only=False)
    assert not (tmp_path / "canary").exists()


def test_a_checkpoint_does_not_name_the_function_that_makes_its_module(trained, tmp_path):
    content = torch.load(trained[2], weights_only=True)
    content["hyper_parameters"]["_instantiator"] = "lightning.pytorch.cli.instantiate_module"
    torch.save(content, tmp_path / "a.ckpt")
    again = MetaTartan.load_from_checkpoint(tmp_path / "a.ckpt")
    assert same(state_of(trained[0]), state_of(again))


def test_a_checkpoint_with_weights_that_are_no_numbers_makes_no_module(trained, tmp_path):
    content = torch.load(trained[2], weights_only=True)
    name = next(iter(name for name in content["state_dict"] if name.startswith("heads.")))
    content["state_dict"][name].view(-1)[0] = torch.nan
    torch.save(content, tmp_path / "a.ckpt")
    with pytest.raises(UserError, match=r"a\.ckpt: the weights heads\..* are not all finite"):
        MetaTartan.load_from_checkpoint(tmp_path / "a.ckpt")


def test_a_loss_on_dev_that_is_not_finite_is_not_left_out(trained, tmp_path, monkeypatch):
    module, *_ = trained
    forward = type(module).forward
    seen = []

    def broken(self, inputs):
        seen.append(len(seen))
        return forward(self, inputs) * (torch.nan if len(seen) == 1 else 1.0)

    monkeypatch.setattr(type(module), "forward", broken)
    rows = [{"text": text, "label": "R"} for text in TEXTS]
    loader = DataLoader(rows, batch_size=2)
    (scores,) = trainer(tmp_path).validate(module, loader, verbose=False)
    assert len(seen) == 2
    assert np.isnan(scores["dev/loss"])


class Cosine(FineTuning):
    def configure_optimizers(self):
        optimiser = super().configure_optimizers()["optimizer"]
        schedule = CosineAnnealingLR(optimiser, self.planned_steps)
        return {"optimizer": optimiser, "lr_scheduler": schedule}


def test_a_schedule_that_keeps_its_length_is_not_made_longer(data_dir, cache_dir, tmp_path):
    data = toy_data(data_dir, cache_dir)
    running = trainer(tmp_path, max_steps=4)
    running.fit(Cosine.for_data(data, lr=1e-3), datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    going_on = {"ckpt_path": tmp_path / "here.ckpt"}
    module = Cosine.for_data(data, lr=1e-3)
    with pytest.raises(UserError, match=r"training had 4 steps, this one has 8, and a CosineAnn"):
        fitted(module, data, tmp_path, max_steps=8, **going_on)
    assert not fitted(module, data, tmp_path, max_steps=4, **going_on).steps
    assert len(fitted(module, data, tmp_path, max_steps=2).steps) == 2


def test_a_new_task_starts_from_the_head_of_a_pre_training_that_was_loaded(
    data_dir, cache_dir, tmp_path
):
    data = toy_data(data_dir, cache_dir)
    running = trainer(tmp_path, max_steps=2)
    pretraining = ContinuedPretraining.for_data(data, lr=1e-2, tasks=["dapt"])
    running.fit(pretraining, datamodule=data)
    running.save_checkpoint(tmp_path / "here.ckpt")
    earlier = ContinuedPretraining.load_from_checkpoint(tmp_path / "here.ckpt")
    module = MTTartan.for_data(toy_data(data_dir, cache_dir, encoder=earlier.encoder), lr=1e-3)
    trained, found = (m.state_dict() for m in (pretraining.heads["dapt"], module.heads["tapt"]))
    assert all(value.equal(found[name]) for name, value in trained.items())
