"""The paper's tables and the overview, from made-up runs."""

from __future__ import annotations

import pytest

from tartan.report.comparison import benchmarks_of, reference_of
from tartan.report.paper import paper_table, paper_tables
from tartan.report.tables import overview
from tests.report.made_up_runs import (
    altered,
    bench_of,
    read_all,
    result_of,
    write_run,
    write_setting,
)

LOW, HIGH = [0.50, 0.51, 0.52, 0.53], [0.60, 0.61, 0.62, 0.63]


def shown(root, key, part="whole", paired=False, holm=False):
    (table,) = (one for one in paper_tables() if one.key == key)
    benches = benchmarks_of(read_all(root), paired, holm)
    return paper_table(table, benches, part)


def overview_of(root, paired=False):
    return overview(bench_of(root, paired), "whole")


def row(found, place=0):
    return found.cells.iloc[place]


@pytest.fixture
def table_1(tmp_path):
    """Table 1 with four seeds; fine-tuning has three, META none."""
    more = {"task": "acl_arc", "encoder": "MiniLM"}
    write_setting(tmp_path, "ft", "finetune", LOW[:3], **more)
    write_setting(tmp_path, "tapt", "tapt", LOW, auxiliaries=["tapt"], **more)
    write_setting(tmp_path, "mt", "mt_tartan", HIGH, auxiliaries=["tapt"], **more)
    return tmp_path


def test_our_numbers_stand_above_the_papers(table_1):
    found = shown(table_1, "table_1")
    ours, published = row(found), row(found, 1)
    assert ours["META-TARTAN"].words == "no runs"
    assert (ours["p, META-TARTAN"].words, ours["Fine-tuning"].marks) == ("–", "(3)†")
    assert ours["MT-TARTAN"].significant
    assert not ours["TAPT"].significant
    names = [name for name, *_ in found.cells.index]
    assert names == ["acl_arc, MiniLM", "acl_arc", "scierc", "chemprot"]
    whose = "paper, RoBERTa-base (another encoder), 10 seeds"
    assert found.cells.index[1] == ("acl_arc", whose, True)
    assert published["MT-TARTAN"].words == "70.48 ± 4.42"
    assert published["p, MT-TARTAN"].words == "0.040"
    assert row(found, 3)["p, MT-TARTAN"].words == "<0.001"


def test_what_is_not_the_papers_setting_stays_out_of_a_column(tmp_path):
    both = {"auxiliaries": ["dapt", "tapt"], "task": "scierc"}
    write_setting(tmp_path, "a", "mt_tartan", HIGH, size=2, **both)
    other = result_of("mt_tartan", 0, 0.9, **both)
    write_run(tmp_path / "b", altered(other, "weighting", "upgrad"))
    shared = {"method.stages.joint.meta_head.kind": "shared"}
    write_setting(tmp_path, "c", "meta_tartan", HIGH, options=shared, **both)
    mine = {"method.stages.joint.module": "mine.FixedEmbeddings"}
    write_setting(tmp_path, "d", "meta_tartan", HIGH, options=mine, **both)
    assert shown(tmp_path, "table_2") is None
    write_setting(tmp_path, "e", "meta_tartan", LOW, **both)
    cells = row(shown(tmp_path, "table_2"))
    assert (cells["MT-TARTAN"].words, cells["META-TARTAN"].words) == ("no runs", "51.50 ± 1.29")


def test_the_overview_has_every_setting_against_the_best_baseline(table_1):
    more = {"task": "acl_arc", "encoder": "MiniLM"}
    worse = [0.1, 0.11, 0.12, 0.13]
    write_setting(table_1, "dapt", "dapt", worse, auxiliaries=["dapt"], **more)
    # the highest by chance, and nothing could be tested against it
    write_setting(table_1, "pretrain", "pretrain", [0.66], **more)
    found = overview_of(table_1)
    names = [name for name, *_ in found.cells.index]
    assert names == ["Fine-tuning", "Pre-training", "TAPT", "DAPT 10x", "MT-TARTAN, TAPT"]
    assert [cell.words for cell in found.cells["difference"]] == [
        "-0.50", "needs two seeds on each side", "reference", "-40.00", "+10.00",
    ]  # fmt: skip
    assert [cell.significant for cell in found.cells["test"]] == [False] * 4 + [True]
    mt, worse = row(found, 4), row(found, 3)
    assert mt["p, two-sided"].value == worse["p, two-sided"].value == pytest.approx(2 / 70)
    assert mt["p, one-sided"].value == pytest.approx(1 / 70)
    assert mt["training FLOPs"].words == "not counted"


def test_weightings_without_a_baseline_are_compared_with_equal_weights(tmp_path):
    for name, scores in (("loss_proportional", HIGH), ("uniform", LOW), ("pcgrad", HIGH[:1])):
        for seed, score in enumerate(scores):
            result = result_of("mt_tartan", seed, score, auxiliaries=["tapt"])
            write_run(tmp_path / name / str(seed), altered(result, "weighting", name))
    reference = reference_of(bench_of(tmp_path), "whole")
    assert (reference.result.method, reference.result.weighting) == ("mt_tartan", "uniform")
    note = f"Differences are to {reference.label}: all methods train tasks together."
    assert note in overview_of(tmp_path).notes


def test_what_the_scores_oriented_is_decided_by_both_tails(tmp_path):
    """Paired, five seeds: one-sided 1/32, two-sided 2/32; only the paper's table asks one way."""
    more = {"auxiliaries": ["tapt"], "task": "scierc"}
    write_setting(tmp_path, "tapt", "tapt", [*LOW, 0.54], **more)
    write_setting(tmp_path, "mt", "mt_tartan", [*HIGH, 0.67], **more)
    ours = row(overview_of(tmp_path, paired=True), 1)
    assert ours["p, two-sided"].value == pytest.approx(2 / 32)
    assert not ours["test"].significant
    assert row(shown(tmp_path, "table_1", paired=True))["MT-TARTAN"].significant
