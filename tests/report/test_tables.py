"""The paper's tables and the overview, from made-up runs."""

from __future__ import annotations

import csv
import io

import pytest

from tartan.report.comparison import ComparisonOptions, adjust, compare, reference_of
from tartan.report.paper import PaperTable, paper_table, paper_tables
from tartan.report.settings import benchmarks_of
from tartan.report.tables import overview, to_csv
from tests.report.made_up_runs import (
    altered,
    bench_of,
    read_all,
    result_of,
    setting_of,
    write_run,
    write_setting,
)

LOW, HIGH = [0.50, 0.51, 0.52, 0.53], [0.60, 0.61, 0.62, 0.63]


def table(key) -> PaperTable:
    (found,) = (one for one in paper_tables() if one.key == key)
    return found


def shown(root, key, part="whole", **choice):
    return paper_table(table(key), benchmarks_of(read_all(root)), part, ComparisonOptions(**choice))


def row(found, place=0):
    return dict(zip(found.columns, found.rows[place].cells, strict=True))


@pytest.fixture
def table_1(tmp_path):
    """Table 1 with four seeds; fine-tuning has three, META none."""
    more = {"task": "acl_arc", "encoder": "MiniLM"}
    write_setting(tmp_path, "ft", "finetune", LOW[:3], **more)
    write_setting(tmp_path, "tapt", "tapt", LOW, auxiliaries=["tapt"], **more)
    write_setting(tmp_path, "mt", "mt_tartan", HIGH, auxiliaries=["tapt"], **more)
    return tmp_path


def test_the_papers_tables_are_all_there():
    tables = paper_tables()
    assert [one.paper for one in tables] == [
        "tables 1 and 6", "tables 2 and 8", "table 3", "table 4", "table 5", "table 7",
    ]  # fmt: skip
    for one in tables:
        assert set(one.against) | set(one.tested) <= set(one.columns)
        for published in one.published.values():
            assert set(published.scores) <= set(one.columns)
            assert set(published.p) <= set(one.tested)
            assert all(1 < mean < 100 and 0 < sd < 10 for mean, sd in published.scores.values())


def test_a_cell_without_runs_says_so_and_one_with_fewer_seeds_is_marked(table_1):
    cells = row(shown(table_1, "table_1"))
    assert cells["META-TARTAN"].words == "no runs"
    assert cells["p, META-TARTAN"].words == "–"
    assert (cells["Fine-tuning"].marks, cells["TAPT"].marks) == ("(3)†", "")


def test_the_papers_numbers_stand_beside_ours_as_another_encoders(table_1):
    found = shown(table_1, "table_1")
    assert [r.name for r in found.rows] == ["acl_arc, MiniLM", "acl_arc", "scierc", "chemprot"]
    published = found.rows[1]
    assert published.from_paper
    assert published.whose == "paper, RoBERTa-base (another encoder), 10 seeds"
    assert row(found, 1)["MT-TARTAN"].words == "70.48 ± 4.42"
    assert row(found, 1)["p, MT-TARTAN"].words == "0.040"
    assert row(found, 3)["p, MT-TARTAN"].words == "<0.001"


def test_every_significant_cell_is_bold(table_1):
    write_setting(
        table_1, "meta", "meta_tartan", [0.70, 0.71, 0.72, 0.73], auxiliaries=["tapt"],
        task="acl_arc", encoder="MiniLM",
    )  # fmt: skip
    cells = row(shown(table_1, "table_1"))
    assert cells["META-TARTAN"].significant
    assert cells["MT-TARTAN"].significant
    assert not cells["Fine-tuning"].significant
    assert not cells["TAPT"].significant


def test_the_unseen_part_has_a_table_of_its_own(tmp_path):
    more = {"auxiliaries": ["tapt"], "task": "scierc"}
    write_setting(tmp_path, "tapt", "tapt", LOW, unseen=HIGH, **more)
    write_setting(tmp_path, "mt", "mt_tartan", HIGH, unseen=LOW, **more)
    whole, unseen = shown(tmp_path, "table_1"), shown(tmp_path, "table_1", "unseen")
    assert row(whole)["MT-TARTAN"].significant
    assert not row(unseen)["MT-TARTAN"].significant
    assert row(unseen)["TAPT"].words == "61.50 ± 1.29"
    assert "not in train" in unseen.title
    assert unseen.rows[1].whose == (
        "paper, RoBERTa-base (another encoder), 10 seeds, whole test split"
    )
    assert any("published numbers of the whole test split" in note for note in unseen.notes)
    assert "whole test split" not in " ".join([whole.rows[1].whose, *whole.notes])
    rows = list(csv.DictReader(io.StringIO(to_csv(unseen))))
    assert {(one["part"], one["whose"][:5]) for one in rows} == {
        ("unseen", "ours,"), ("whole", "paper"),
    }  # fmt: skip


def test_sizes_weightings_and_ablations_keep_runs_out_of_a_column(tmp_path):
    both = {"auxiliaries": ["dapt", "tapt"], "task": "scierc"}
    write_setting(tmp_path, "a", "mt_tartan", HIGH, size=2, **both)
    other = result_of("mt_tartan", 0, 0.9, **both)
    write_run(tmp_path / "b", altered(other, "weighting", "upgrad"))
    shared = {"method.stages.joint.meta_head.kind": "shared"}
    write_setting(tmp_path, "c", "meta_tartan", HIGH, options=shared, **both)
    assert shown(tmp_path, "table_2") is None
    write_setting(tmp_path, "d", "meta_tartan", LOW, **both)
    cells = row(shown(tmp_path, "table_2"))
    assert (cells["MT-TARTAN"].words, cells["META-TARTAN"].words) == ("no runs", "51.50 ± 1.29")


def test_a_module_of_ones_own_is_not_the_papers_method(tmp_path):
    more = {"auxiliaries": ["tapt"], "task": "scierc"}
    options = {"method.stages.joint.module": "mine.FixedEmbeddings"}
    write_setting(tmp_path, "mine", "meta_tartan", HIGH, options=options, **more)
    assert shown(tmp_path, "table_1") is None
    write_setting(tmp_path, "meta", "meta_tartan", LOW[:2], **more)
    cell = row(shown(tmp_path, "table_1"))["META-TARTAN"]
    assert (cell.seeds, cell.marks) == (2, "")


def test_a_corpus_of_ones_own_is_marked_beside_the_papers(tmp_path):
    more = {"auxiliaries": ["dapt"], "task": "scierc"}
    own = {"auxiliary.dapt.path": "texts/mine.txt"}
    write_setting(tmp_path, "mine", "dapt", HIGH, options=own, **more)
    found = shown(tmp_path, "table_2")
    assert row(found)["DAPT"].marks == "§"
    assert found.notes[-1] == "§: with domain text of one's own: texts/mine.txt."
    write_setting(tmp_path, "theirs", "dapt", LOW[:2], **more)
    cell = row(shown(tmp_path, "table_2"))["DAPT"]
    assert (cell.seeds, cell.marks) == (2, "‡")


def test_holm_counts_all_of_a_tables_tests(table_1):
    write_setting(
        table_1, "meta", "meta_tartan", HIGH, auxiliaries=["tapt"], task="acl_arc",
        encoder="MiniLM",
    )  # fmt: skip
    cells = row(shown(table_1, "table_1", holm=True))
    assert cells["p, MT-TARTAN"].value == pytest.approx(2 / 70)
    assert cells["p, MT-TARTAN"].words == "0.029 (Holm)"


def test_pairs_are_seeds_that_both_have(table_1):
    ft, mt = setting_of(table_1, "finetune"), setting_of(table_1, "mt_tartan")
    paired = compare(mt, ft, "whole", paired=True)
    assert paired.seeds == (3, 3)
    assert paired.test.one_sided == pytest.approx(1 / 8)
    unpaired = compare(mt, ft, "whole")
    assert unpaired.seeds == (4, 3)
    assert unpaired.test.one_sided == pytest.approx(1 / 35)


def test_one_seed_is_no_comparison_and_says_so(tmp_path):
    more = {"auxiliaries": ["tapt"], "task": "scierc"}
    write_setting(tmp_path, "tapt", "tapt", LOW, **more)
    write_setting(tmp_path, "mt", "mt_tartan", [0.9], **more)
    cells = row(shown(tmp_path, "table_1"))
    assert cells["MT-TARTAN"].words == "90.00"
    assert cells["p, MT-TARTAN"].words == "needs two seeds on each side"
    assert not cells["MT-TARTAN"].significant
    comparison = compare(setting_of(tmp_path, "mt_tartan"), setting_of(tmp_path, "tapt"), "whole")
    assert adjust([comparison]) == [comparison]


def test_the_overview_has_every_setting_against_the_best_baseline(table_1):
    bench = bench_of(table_1)
    reference, left_out = reference_of(bench.settings, "whole")
    assert (reference.result.method, left_out) == ("tapt", [])
    found = overview(bench, "whole", ComparisonOptions())
    assert [r.name for r in found.rows] == ["Fine-tuning", "TAPT", "MT-TARTAN, TAPT"]
    ft, tapt, mt = (row(found, place) for place in range(3))
    assert tapt["difference"].words == "reference"
    assert mt["difference"].words == "+10.00"
    assert mt["superiority"].words == "1.00"
    assert mt["test"].significant
    assert not ft["test"].significant
    assert mt["p, two-sided"].value == pytest.approx(2 / 70)
    assert mt["p, one-sided"].value == pytest.approx(1 / 70)
    assert mt["training FLOPs"].words == "not counted"


def test_weightings_without_a_baseline_are_compared_with_equal_weights(tmp_path):
    for name, scores in (("loss_proportional", HIGH), ("uniform", LOW), ("pcgrad", HIGH[:1])):
        for seed, score in enumerate(scores):
            result = result_of("mt_tartan", seed, score, auxiliaries=["tapt"])
            write_run(tmp_path / name / str(seed), altered(result, "weighting", name))
    bench = bench_of(tmp_path)
    reference, _ = reference_of(bench.settings, "whole")
    assert (reference.result.method, reference.result.weighting) == ("mt_tartan", "uniform")
    note = f"Differences are to {reference.label}: all methods train tasks together."
    assert note in " ".join(overview(bench, "whole", ComparisonOptions()).notes)


def test_what_the_scores_oriented_is_decided_by_both_tails(tmp_path):
    """Paired, five seeds: one-sided 1/32, two-sided 2/32; only the paper's table asks one way."""
    more = {"auxiliaries": ["tapt"], "task": "scierc"}
    write_setting(tmp_path, "tapt", "tapt", [*LOW, 0.54], **more)
    write_setting(tmp_path, "mt", "mt_tartan", [*HIGH, 0.67], **more)
    ours = row(overview(bench_of(tmp_path), "whole", ComparisonOptions(paired=True)), 1)
    assert ours["p, two-sided"].value == pytest.approx(2 / 32)
    assert not ours["test"].significant
    assert row(shown(tmp_path, "table_1", paired=True))["MT-TARTAN"].significant


def test_a_worse_setting_is_never_bold(table_1):
    write_setting(
        table_1, "dapt", "dapt", [0.1, 0.11, 0.12, 0.13], auxiliaries=["dapt"],
        task="acl_arc", encoder="MiniLM",
    )  # fmt: skip
    worse = row(overview(bench_of(table_1), "whole", ComparisonOptions()), 2)
    assert worse["difference"].words == "-40.00"
    assert worse["p, two-sided"].value < 0.05
    assert not worse["test"].significant


def test_a_baseline_of_one_seed_switches_no_test_off(table_1):
    """It is the highest by chance, and nothing could be tested against it."""
    write_setting(
        table_1, "dapt", "dapt", [0.66], auxiliaries=["dapt"], task="acl_arc", encoder="MiniLM"
    )
    found = overview(bench_of(table_1), "whole", ComparisonOptions())
    assert [row(found, place)["difference"].words for place in range(4)] == [
        "-0.50", "reference", "needs two seeds on each side", "+10.00",
    ]  # fmt: skip
    (note,) = (note for note in found.notes if note.startswith("Not considered"))
    assert note.endswith("compare: DAPT 10x.")


def test_a_difference_of_some_seeds_says_of_how_many(tmp_path):
    write_setting(tmp_path, "ft", "finetune", [0.65, 0.50, 0.52])
    write_setting(tmp_path, "mt", "mt_tartan", [0.60, 0.61], auxiliaries=["tapt"])
    found = overview(bench_of(tmp_path), "whole", ComparisonOptions(paired=True))
    assert row(found, 1)["difference"].words == "+3.00 (2 pairs)"
    assert row(found, 1)["95% interval"].words == "-98.65 to +104.65"
    found = overview(bench_of(tmp_path), "whole", ComparisonOptions())
    assert "pair" not in row(found, 1)["difference"].words
