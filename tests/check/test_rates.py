"""Passes are measured with the run's own batches, and leave the encoder as it was."""

from __future__ import annotations

import pytest
import torch
from hydra import compose, initialize_config_dir

from tartan.check.inputs import read_inputs
from tartan.check.rates import PassTimer, _spread
from tartan.core.memory import parameter_bytes
from tartan.core.task import MicroBatch
from tartan.core.task_names import END_TASK
from tartan.experiment.prepare import enabled_stages
from tests.check import made_up
from tests.in_process import CONF


@pytest.fixture
def inputs(tmp_path):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("check", overrides=made_up.written(tmp_path))
        yield config, read_inputs(config, enabled_stages(config))


def test_rates_are_of_the_tasks_asked_for_and_nothing_is_trained(inputs):
    config, found = inputs
    body = found.prepared.encoder.body
    before = {name: value.clone() for name, value in body.state_dict().items()}
    bench = PassTimer(config, found, {END_TASK: {4, 8}, "dapt": {6}})
    rates = bench.rates()
    machine = bench.machine()
    assert set(rates) == {END_TASK, "dapt"}
    for rate in rates.values():
        assert rate.seconds > 0
        assert rate.forward_seconds > 0
        assert rate.measured > 0
        assert rate.held > 0
        assert rate.head > 0
    assert machine.update_seconds > 0
    assert machine.body == parameter_bytes(body) == sum(4 * p.numel() for p in body.parameters())
    after = body.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_parameters_are_measured_in_the_type_of_the_run(inputs):
    config, found = inputs
    single = PassTimer(config, found, {END_TASK: {4}}).rates()[END_TASK].head
    config.trainer.precision = "64-true"
    double = PassTimer(config, found, {END_TASK: {4}})
    rate, machine = double.rates()[END_TASK], double.machine()
    assert rate.head == 2 * single
    body = found.prepared.encoder.body
    assert machine.body == sum(8 * p.numel() for p in body.parameters())


def test_objectives_that_share_a_text_count_it_once(tmp_path):
    own = made_up.written(tmp_path)
    text = next(option for option in own if option.startswith("auxiliary.dapt.path="))
    own = [option for option in own if not option.startswith("auxiliary")]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        aang = ["method=aang", "auxiliary=aang_td_ed", "auxiliary.size=all"]
        domain = "auxiliary.aang.data.domain"
        options = [f"{domain}.path={text.partition('=')[2]}", f"{domain}.max_length=9"]
        config = compose("check", overrides=[*own, *aang, *options])
        found = read_inputs(config, enabled_stages(config))
    assert sum(task.kind == "domain" for task, _ in found.auxiliaries.values()) == 16
    (source,) = (source for source in found.sources() if source.domain)
    assert (source.name, source.max_length) == ("aang.data.domain", 9)
    assert len(source.texts) == len(made_up.CORPUS)


def test_positions_count_padding(inputs):
    config, found = inputs
    positions = PassTimer(config, found, {END_TASK: {4, 8}}).positions[END_TASK]
    texts = found.prepared.splits.train["input_ids"]
    assert positions[8] >= sum(map(len, texts))
    assert positions[8] <= 8 * (max(map(len, texts)) + 7)
    assert positions[4] < positions[8]


def test_images_are_counted_by_the_example():
    assert MicroBatch({"images": torch.zeros(5, 1, 8, 8)}, 5, 5).positions == 5
    assert MicroBatch({"input_ids": torch.zeros(5, 7)}, 3, 5).positions == 35


@pytest.mark.parametrize("count", [3, 4, 9, 16])
def test_parts_are_measured_in_an_order_that_begins_with_the_middle_and_both_sides(count):
    parts = [MicroBatch({}, number, 1) for number in range(count)]
    order = [part.units for part in _spread(parts)]
    assert sorted(order) == list(range(count))
    assert order[0] == count // 2
    assert min(order[:3]) < order[0] < max(order[:3])
