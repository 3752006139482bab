"""The bench's steps compute what their names say."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import torch
from hydra import initialize_config_dir

from benchmarks.ablations import ABLATIONS, PADDED_ROWS, measure_ablations
from benchmarks.case import Case, build_case
from benchmarks.evaluation import measure_evaluation
from benchmarks.floor import Floor, measure_floor
from benchmarks.growth import measure_growth
from benchmarks.manual_step import ManualStep
from benchmarks.memory import MemoryRow, measure_memory, with_growth
from benchmarks.peers import compare_with_published, compare_with_torchjd, compare_with_trainer
from benchmarks.published_step import PublishedStep
from benchmarks.transformers_trainer import transformers_model
from benchmarks.waits import measure_waits
from tartan.kernels.attention import IMPLEMENTATION
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
NO_DROPOUT = ("encoder.dropout=0", "classifier.dropout=0")


@pytest.fixture(autouse=True)
def _hydra():
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        yield


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

    return new


def moved(before, module):
    return max(float((a - b).abs().max()) for a, b in zip(before, module.parameters(), strict=True))


def copied(module):
    return [p.detach().clone() for p in module.parameters()]


def test_a_case_has_its_number_of_tasks(case, tmp_path):
    for tasks in (1, 2, 4):
        built = build_case(case("meta_tartan", tasks), 2, tmp_path)
        assert len(built.module.tasks) == 1 + tasks
        batch = built.batch(0, CPU)
        assert [part.examples for part in batch.tasks.values()] == [8] * (1 + tasks)
        assert batch.meta_batch.examples == 8


def test_the_floor_takes_one_pass_a_batch_and_one_update(case, tmp_path):
    built = build_case(case("meta_tartan", 2), 2, tmp_path)
    floor = Floor(built.module)
    calls, body = [], floor._passes.body.module
    body.register_forward_hook(lambda *_: calls.append(1))
    before, own = copied(body), copied(built.module.body)
    batch = built.batch(0, CPU)
    floor.step(batch)
    parts = [*batch.tasks.values(), batch.meta_batch]
    assert len(calls) == sum(len(part.micro_batches) for part in parts)
    assert moved(before, body) > 0
    assert moved(own, built.module.body) == 0  # the run's own body is not changed


def test_the_floor_is_timed_in_a_run(case, tmp_path):
    case_of = case("meta_tartan", 1)
    row = measure_floor(case_of, "tiny", 3, tmp_path / "watched", warm_up=2, matrix_rate=1e15)
    assert (row.passes, row.tasks, row.ratio.pairs) == (3, 1, 3)
    assert row.ratio.median > 0
    assert row.tokens_per_second > 0
    assert 0 < row.padding_percent < 100
    assert 0 < row.percent_of_matrix_rate < 1


def test_a_manual_step_is_that_of_plain_training(case, tmp_path):
    """Without dropout both give the same gradients, and so the same update."""
    built = build_case(case("finetune", 0, *NO_DROPOUT), 2, tmp_path)
    reference = copy.deepcopy(built.module)
    batch = built.batch(0, CPU)
    by_hand = ManualStep(built, CPU)
    loss = sum(
        reference.tasks[0].objective.losses(
            reference.body, reference.tasks[0].head,
            reference.tasks[0].objective.features(reference.body, part.inputs),
            part.inputs["labels"],
        ).sum()
        for part in batch.tasks["end_task"].micro_batches
    ) / 8  # fmt: skip
    loss.backward()
    parameters = [*reference.body.parameters(), *reference.tasks[0].head.parameters()]
    torch.nn.utils.clip_grad_norm_(parameters, reference.optimisation.clip_norm)
    optimiser = reference.optimisation.optimiser(reference.body, reference.tasks[0].head, [])
    optimiser.step()
    by_hand.step(batch)
    for a, b in zip(by_hand.module.body.parameters(), reference.body.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_the_published_step_reads_each_example_of_the_batch_once(case, tmp_path):
    built = build_case(case("meta_tartan", 1), 2, tmp_path)
    published = PublishedStep(built, micro_batch_size=3, device=CPU)
    batch = built.batch(0, CPU)
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


def test_peers_are_compared_with_the_modules_step(case, tmp_path):
    row = compare_with_published(case("meta_tartan", 1), 2, tmp_path, CPU)
    assert row.ratio.pairs == 2
    assert row.ratio.median > 0
    pytest.importorskip("torchjd", reason="the extra 'weightings' is not installed")
    assert compare_with_torchjd(case("mt_tartan", 2), 2, tmp_path, CPU).ratio.pairs == 2


@pytest.mark.parametrize("method", ["finetune", "tapt"])
def test_transformers_trainer_trains_on_the_same_texts(case, tmp_path, method):
    pytest.importorskip("accelerate", reason="the extra 'bench' is not installed")
    assert compare_with_trainer(case(method, 0), 2, tmp_path, CPU).ratio.pairs == 2


def test_each_optimisation_is_measured(case, tmp_path, monkeypatch):
    *used, unused = ABLATIONS
    unused = replace(unused, overrides=["encoder.dropout=0"])  # what this encoder has
    monkeypatch.setattr("benchmarks.ablations.ABLATIONS", (*used, unused))
    rows = measure_ablations(case("meta_tartan", 1), 1, tmp_path, CPU)
    assert [row.optimisation for row in rows] == [PADDED_ROWS, *(one.name for one in ABLATIONS)]
    assert [row.by_default for row in rows] == [True] * len(ABLATIONS) + [False]
    assert all(row.ratio.median > 0 for row in rows)


def test_peers_get_torchs_own_dropout_and_attention(case, tmp_path):
    built = build_case(case("meta_tartan", 1), 2, tmp_path)
    published = PublishedStep(built, micro_batch_size=3, device=CPU)
    peers = [transformers_model(built.module.body, labels) for labels in (3, None)]
    for body in [published._body, *(peer.base_model for peer in peers)]:
        assert body.config._attn_implementation == "sdpa"
        kinds = {type(m) for m in body.modules() if isinstance(m, torch.nn.Dropout)}
        assert kinds == {torch.nn.Dropout}
    assert built.module.body.config._attn_implementation == IMPLEMENTATION


def test_evaluations_are_measured_over_dev(case, tmp_path):
    row = measure_evaluation(case("finetune", 0), "tiny", 2, tmp_path, CPU)
    assert (row.encoder, row.examples_per_second.pairs) == ("tiny", 2)
    assert row.tokens_per_second > row.examples_per_second.median > 0


def test_memory_of_heads_grows_with_the_tasks(case, tmp_path):
    few, many = (measure_memory([case("meta_tartan", n)], tmp_path, CPU)[0] for n in (1, 4))
    assert many.heads_mib == 4 * few.heads_mib
    assert many.peak_mib > 0


def test_growth_of_memory_is_against_the_methods_first_row():
    rows = with_growth(
        [
            MemoryRow("mt_tartan", 1, peak_mib=50, heads_mib=0),
            MemoryRow("meta_tartan", 1, peak_mib=100, heads_mib=10),
            MemoryRow("meta_tartan", 3, peak_mib=140, heads_mib=30),
        ]
    )
    assert [row.percent_a_task for row in rows] == [None, None, pytest.approx(10)]


def test_memory_does_not_grow_with_composed_objectives(case, data_dir, tmp_path):
    cases = [case("aang", n, f"task.domain={data_dir}/corpus.txt") for n in (1, 24, 40)]
    one, *more = measure_memory(cases, tmp_path, CPU)
    assert [row.peak_mib for row in more] == pytest.approx([one.peak_mib] * 2, rel=0.02)


def test_proportional_growth_has_slope_one(case, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "benchmarks.growth.time_interleaved",
        lambda parts, rounds, device: {n: [0.3 * 2**i] for i, n in enumerate(parts)},
    )
    cases = {n: case("meta_tartan", n) for n in (1, 2, 4)}
    growth = measure_growth("auxiliary tasks", cases, 1, tmp_path, CPU)
    assert growth.slope == pytest.approx(1)
    assert growth.seconds == pytest.approx([0.1, 0.2, 0.4])


def test_waits_are_reported_with_their_lines(case, tmp_path, monkeypatch):
    """A warning like torch's stands in for a wait, which needs a GPU."""
    modes, take = [], ManualStep.step

    def step(self, batch):
        take(self, batch)
        if modes == ["warn"]:
            warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
            warnings.warn("something else", stacklevel=1)

    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    monkeypatch.setattr(ManualStep, "step", step)
    row = measure_waits(case("meta_tartan", 1), tmp_path, CPU)
    assert modes == ["warn", 0]
    assert row.waits == 1
    assert [Path(line.rsplit(":", 1)[0]).name for line in row.lines] == ["test_steps.py"]


def test_batches_are_on_the_device_of_the_step(case, tmp_path):
    built = build_case(case("meta_tartan", 1), 2, tmp_path)
    (first, _) = built.batches(torch.device("meta"))
    parts = [p for b in (*first.tasks.values(), first.meta_batch) for p in b.micro_batches]
    assert {
        v.device.type for p in parts for v in p.inputs.values() if isinstance(v, torch.Tensor)
    } == {"meta"}
    assert built.batch(0, CPU).tasks["end_task"].micro_batches[0].inputs["labels"].device == CPU
