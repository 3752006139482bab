"""The HTML page: nothing from elsewhere, text escaped, every link leads somewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tartan.report.main import main
from tests.report.made_up_runs import config_of, result_of, write_run, write_setting

SCRIPT = "<script>window.hacked = true</script><img src=x onerror='window.hacked = true'>"
LOW, HIGH = [0.50, 0.51, 0.52, 0.53], [0.60, 0.61, 0.62, 0.63]


class Elements(HTMLParser):
    """Tags with their attributes, and what is outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text, self._raw = [], "", 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self._raw += tag in ("script", "style")

    def handle_endtag(self, tag):
        self._raw -= tag in ("script", "style")

    def handle_data(self, data):
        self.text += "" if self._raw else data


def page_of(root):
    assert main([str(root)]) == 0
    return (root / "report" / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a report of made-up runs, one of them unfinished."""
    root = tmp_path_factory.mktemp("runs")
    more = {"task": "acl_arc", "auxiliaries": ["tapt"], "flops": 1e12}
    write_setting(root, "ft", "finetune", LOW, task="acl_arc")
    write_setting(root, "mt", "mt_tartan", HIGH, **more)
    write_setting(root, "meta", "meta_tartan", HIGH, unseen=LOW, **more)
    write_run(root / "left", None, config_of(result_of("finetune", 9, 0.5)))
    page_of(root)
    return root


@pytest.fixture
def page(runs):
    return (runs / "report" / "report.html").read_text(encoding="utf-8")


def test_nothing_comes_from_elsewhere(page):
    for tag, attributes in Elements(page).found:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:")) or not value, (tag, value)
        assert not any(name.startswith("on") for name in attributes)
    assert "default-src 'none'" in page
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_every_link_leads_to_one_place_and_every_run_has_its_command(page):
    elements = Elements(page)
    ids = [attributes["id"] for _, attributes in elements.found if attributes.get("id")]
    assert len(set(ids)) == len(ids)
    links = [a["href"][1:] for tag, a in elements.found if tag == "a"]
    assert set(links) <= set(ids)
    assert len(links) > 30
    sections = re.findall(r'<section[^>]* id="([^"]+)"', page)
    assert sections[:3] == ["summary", "bench-acl_arc-tiny", "paper"]
    for name in ("ft", "mt", "meta"):
        for seed in range(4):
            assert f"{name}/seed={seed}" in elements.text
            assert f"tartan run +experiment={name} seed={seed}" in elements.text


def write_hostile(root: Path) -> None:
    """Finished runs of two settings, an unfinished and an unreadable one."""
    for name, method in (("one", "finetune"), ("two", "mt_tartan")):
        for seed in (0, 1):
            result = result_of(
                method,
                seed,
                0.5 + 0.1 * seed,
                task=f"t{SCRIPT}",
                encoder=f"</script>{SCRIPT}",
                labels=[f"l{SCRIPT}", "{{ 7 * 7 }}", "$x$"],
                auxiliaries=["dapt"] if name == "two" else [],
                flops=1e9,
            )
            config = config_of(result, {"evil": SCRIPT if name == "one" else "{{ 7 * 7 }}"})
            overrides = [f"+x={SCRIPT}", "'; rm -rf ~", "javascript:alert(1)"]
            folder = f"{name}{seed}<b onmouseover=alert(1)>&lt;"
            write_run(root / folder, result, config, overrides=overrides)
    write_run(root / "left<script>", None, config_of(result_of("tapt", 0, 0.5)))
    damaged = write_run(root / "bad<script>", result_of("finetune", 0, 0.5))
    (damaged / "result.json").write_text('{"schema": 2, "<script>": ')


def test_text_from_runs_is_text(tmp_path):
    write_hostile(tmp_path)
    page = page_of(tmp_path)
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert not {"onerror", "onmouseover"} & attributes.keys()
        if tag == "img":
            assert attributes["src"].startswith("data:image/svg+xml;base64,")
        if tag == "a":
            assert attributes["href"].startswith("#")
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.DOTALL)
    assert not any("<script>window.hacked" in script for script in scripts)
    assert "<script>window.hacked = true</script>" in elements.text
    assert "{{ 7 * 7 }}" in elements.text
