"""The HTML page in a browser: it renders, sorts, follows links, and asks nobody for anything."""

from __future__ import annotations

import os
import shutil

import pytest

from tartan.report.main import main
from tests.report.hostile import write_hostile
from tests.report.made_up_runs import config_of, result_of, write_run, write_setting

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, if the machine has one (`CHROMIUM` may name it)."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    named = [os.environ.get("CHROMIUM"), *map(shutil.which, BROWSERS)]
    path = next((path for path in named if path), None)
    if path is None:
        pytest.skip(f"no browser here ({', '.join(BROWSERS)}; or CHROMIUM=PATH)")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of made-up runs, one of them unfinished."""
    root = tmp_path_factory.mktemp("runs")
    more = {"auxiliaries": ["tapt"], "task": "acl_arc", "flops": 1e12}
    write_setting(root, "ft", "finetune", [0.51, 0.53, 0.52], task="acl_arc")
    write_setting(root, "tapt", "tapt", [0.41, 0.43, 0.42], **more)
    write_setting(root, "mt", "mt_tartan", [0.61, 0.63, 0.62], **more)
    write_setting(root, "meta", "meta_tartan", [0.72, 0.74, 0.70], **more)
    write_run(root / "left", None, config_of(result_of("finetune", 9, 0.5)))
    assert main([str(root)]) == 0
    return root / "report" / "report.html"


class Visit:
    """A page that has been opened, and everything it complained of or asked for."""

    def __init__(self, browser, path, width=1280):
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.complaints = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._request)
        self.page.goto(path.as_uri())

    def _request(self, request):
        if not request.url.startswith(("data:", "blob:")) and not request.is_navigation_request():
            self.complaints.append(request.url)


@pytest.fixture
def visit(browser):
    """Open a page; at the end of the test it must not have complained."""
    visits = []

    def call(path, width=1280):
        visits.append(Visit(browser, path, width))
        return visits[-1].page

    yield call
    for one in visits:
        assert one.complaints == []
        one.page.close()


@pytest.mark.parametrize("width", [1280, 380])
def test_it_renders_without_complaint_and_fits_the_window(visit, report, width):
    page = visit(report, width)
    assert page.locator("h1").inner_text() == "Report of runs"
    assert page.locator(".summary li").first.is_visible()
    inner = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert inner[0] <= inner[1]
    loaded = page.evaluate(
        "Array.from(document.images).every((i) => i.complete && i.naturalWidth > 0)"
    )
    assert loaded


def test_a_table_sorts_both_ways_and_back(visit, report):
    page = visit(report)
    table = page.locator("#table-acl_arc-tiny-whole")
    head = table.locator("thead th").nth(3)

    def column():
        return [
            cell.split(" ")[0] for cell in table.locator("tbody td:nth-child(4)").all_inner_texts()
        ]

    original = column()
    assert original == ["52.00", "42.00", "62.00", "72.00"]
    head.locator("button").click()
    assert column() == sorted(original)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert column() == sorted(original, reverse=True)
    head.locator("button").click()
    assert column() == original
    assert head.get_attribute("aria-sort") is None


def test_a_number_leads_to_its_runs(visit, report):
    page = visit(report)
    link = page.locator("#table-acl_arc-tiny-whole tbody tr").nth(2).locator("a").first
    link.click()
    target = page.locator(page.evaluate("location.hash"))
    assert "MT-TARTAN" in target.locator("h4").inner_text()
    assert target.locator("tbody tr").count() == 3
    assert target.bounding_box()["y"] < 900


def test_text_from_runs_is_not_executed(visit, tmp_path):
    write_hostile(tmp_path / "runs")
    assert main([str(tmp_path / "runs")]) == 0
    page = visit(tmp_path / "runs" / "report" / "report.html")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src='x'], b, i").count() == 0
    assert "<script>window.hacked" in page.locator("h2").nth(2).inner_text()
