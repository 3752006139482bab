"""The numbers of stored run folders, as the report before its rewriting gave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tartan.report.report import report_of
from tartan.report.tables import to_csv
from tests.report.made_up_runs import write_setting

GOLDEN = Path(__file__).parent / "golden"


def write_runs(root: Path) -> None:
    """Eight settings of a task of the paper, with 1 to 5 seeds."""
    more = {"task": "acl_arc", "encoder": "MiniLM", "flops": 1e12}
    both = {"auxiliaries": ["dapt", "tapt"], **more}
    scores = [0.601, 0.612, 0.587, 0.606, 0.598]
    write_setting(root, "ft", "finetune", scores, unseen=[s - 0.02 for s in scores], **more)
    tapt = [0.613, 0.618, 0.595, 0.620, 0.611]
    write_setting(root, "tapt", "tapt", tapt, unseen=scores, auxiliaries=["tapt"], **more)
    write_setting(root, "dapt", "dapt", tapt[1:], auxiliaries=["dapt"], **more)
    for size, shift in ((1, 0.01), (10, 0.03)):
        mt = [s + shift for s in scores[:4]]
        write_setting(root, f"mt{size}", "mt_tartan", mt, size=size, **both)
        meta = [s + 1.3 * shift for s in tapt]
        write_setting(root, f"meta{size}", "meta_tartan", meta, size=size, **both)
    write_setting(root, "mt", "mt_tartan", [0.66], auxiliaries=["tapt"], **more)


@pytest.mark.parametrize(("name", "on"), [("plain", False), ("paired_holm", True)])
def test_the_numbers_are_those_of_before(tmp_path, name, on):
    write_runs(tmp_path)
    report = report_of(tmp_path, paired=on, holm=on)
    tables = [*(table for part in report.benches for table in part.tables), *report.paper]
    found = "".join(to_csv(table) for table in tables if table.key != "table_3")
    assert found == (GOLDEN / f"{name}.csv").read_text(encoding="utf-8")
