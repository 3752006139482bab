"""The bench's ratios, and that its steps compute what their names say."""

from __future__ import annotations

import copy
import json
from itertools import chain

import pytest
import torch
from hydra import initialize_config_dir

from benchmarks.__main__ import main
from benchmarks.case import Case, build_case, loss_of
from benchmarks.peers import PublishedStep, transformers_model
from benchmarks.steps import Floor
from tartan.kernels.attention import IMPLEMENTATION
from tests.conftest import ROOT

CPU = torch.device("cpu")


@pytest.fixture
def case(data_dir, cache_dir):
    def new(method, tasks, *more):
        options = [
            "encoder=tiny",
            "task=files",
            *(f"task.{split}={data_dir}/toy/{split}.jsonl" for split in ("train", "dev", "test")),
            "task.max_length=32",
            "auxiliary.size=2",
            f"cache_dir={cache_dir}",
            "trainer.precision=32-true",
            *more,
        ]
        return Case(method, tasks, 8, options, str(data_dir / "corpus.txt"))

    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        yield new


def moved(before, module):
    return max(float((a - b).abs().max()) for a, b in zip(before, module.parameters(), strict=True))


def copied(module):
    return [p.detach().clone() for p in module.parameters()]


def test_the_floor_takes_one_pass_a_batch_and_one_update(case, tmp_path):
    built = build_case(case("meta_tartan", 2), 2, tmp_path, CPU)
    floor, calls = Floor(built.module), []
    floor.body.register_forward_hook(lambda *_: calls.append(1))
    before, own = copied(floor.body), copied(built.module.body)
    batch = built.batch(0)
    floor.step(batch)
    parts = [*batch.tasks.values(), batch.meta_batch]
    assert len(calls) == sum(len(part.micro_batches) for part in parts)
    assert moved(before, floor.body) > 0
    assert moved(own, built.module.body) == 0  # the run's own body is not changed


def test_the_modules_step_is_that_of_plain_training(case, tmp_path):
    """Without dropout both give the same gradients, and so the same update."""
    no_dropout = ("encoder.dropout=0", "classifier.dropout=0")
    built = build_case(case("finetune", 0, *no_dropout), 2, tmp_path, CPU)
    reference, batch = copy.deepcopy(built.module), built.batch(0)
    body, (task,) = reference.body, reference.tasks
    for part in batch.tasks["end_task"].micro_batches:
        (loss_of(task.objective, body, task.head, part) / 8).backward()
    parameters = [*body.parameters(), *task.head.parameters()]
    torch.nn.utils.clip_grad_norm_(parameters, reference.optimisation.clip_norm)
    reference.optimisation.optimiser(body, task.head, []).step()
    built.stepper()(batch)
    for a, b in zip(built.module.body.parameters(), body.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_the_published_step_reads_each_example_of_the_batch_once(case, tmp_path):
    built = build_case(case("meta_tartan", 1), 2, tmp_path, CPU)
    published = PublishedStep(built, micro_batch_size=3)
    batch = built.batch(0)
    parts = published._micro_batches(batch.tasks["dapt"])
    assert [len(ids) for ids, _ in parts] == [3, 3, 2]
    predicted = sum(int((labels != -100).sum()) for _, labels in parts)
    assert predicted == batch.tasks["dapt"].units
    labels = [
        labels[:, 0].tolist() for _, labels in published._micro_batches(batch.tasks["end_task"])
    ]
    own = [part.inputs["labels"].tolist() for part in batch.tasks["end_task"].micro_batches]
    assert sorted(chain(*labels)) == sorted(chain(*own))
    before = copied(published._body)
    published.step(batch)
    assert moved(before, published._body) > 0
    assert all(torch.isfinite(p).all() for p in published._body.parameters())


def test_peers_get_torchs_own_dropout_and_attention(case, tmp_path):
    built = build_case(case("meta_tartan", 1), 2, tmp_path, CPU)
    peers = [transformers_model(built.module.body, labels) for labels in (3, None)]
    for body in [PublishedStep(built, 3)._body, *(peer.base_model for peer in peers)]:
        assert body.config._attn_implementation == "sdpa"
        kinds = {type(m) for m in body.modules() if isinstance(m, torch.nn.Dropout)}
        assert kinds == {torch.nn.Dropout}
    assert built.module.body.config._attn_implementation == IMPLEMENTATION


@pytest.mark.slow
def test_the_command_measures_all_sections(data_dir, tmp_path, monkeypatch, capsys):
    pytest.importorskip("accelerate", reason="the extra 'bench' is not installed")
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    toy = [f"task.{split}={data_dir}/toy/{split}.jsonl" for split in ("train", "dev", "test")]
    main([
        "encoders=[tiny]", "rounds=2", "warm_up=1", "batch_size=8", "data.task=files",
        "data.max_length=32", f"data.corpus={data_dir}/corpus.txt", "precision=32-true",
        f"options={json.dumps([*toy, 'auxiliary.size=2'])}", f"output={tmp_path}/bench.json",
    ])  # fmt: skip
    rows = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["rows"]
    sections = [row["section"] for row in rows]
    assert {name: sections.count(name) for name in sections} == {
        "floor": 4, "ablations": 3, "peers": 4, "memory": 5,
    }  # fmt: skip
    assert all(row["ratio"]["median"] > 0 for row in rows if row["section"] != "memory")
    floors = [row for row in rows if row["section"] == "floor"]
    assert all(0 < row["padding"] < 100 and row["tokens_s"] > 0 for row in floors)
    assert "peak_mib" in capsys.readouterr().out
