"""The HTML page as a file: nothing from elsewhere, text escaped, every link leads somewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tartan.report.main import main
from tests.report.hostile import write_hostile
from tests.report.made_up_runs import config_of, result_of, write_run, write_setting

LOW, HIGH = [0.50, 0.51, 0.52, 0.53], [0.60, 0.61, 0.62, 0.63]


class Elements(HTMLParser):
    """Tags with their attributes, and what is outside scripts and styles."""

    def __init__(self):
        super().__init__()
        self.found, self.text, self._raw = [], [], 0

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self._raw += tag in ("script", "style")

    def handle_endtag(self, tag):
        self._raw -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._raw:
            self.text.append(data)


def parsed(page):
    elements = Elements()
    elements.feed(page)
    return elements


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of made-up runs, one of them unfinished."""
    root = tmp_path_factory.mktemp("runs")
    more = {"task": "acl_arc", "auxiliaries": ["tapt"], "flops": 1e12}
    write_setting(root, "ft", "finetune", LOW, task="acl_arc")
    write_setting(root, "tapt", "tapt", LOW, **more)
    write_setting(root, "mt", "mt_tartan", HIGH, **more)
    write_setting(root, "meta", "meta_tartan", HIGH, unseen=LOW, **more)
    write_run(root / "left", None, config_of(result_of("finetune", 9, 0.5)))
    assert main([str(root)]) == 0
    return (root / "report" / "report.html").read_text(encoding="utf-8")


def test_nothing_comes_from_elsewhere(page):
    for tag, attributes in parsed(page).found:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:")) or not value, (tag, value)
        assert not any(name.startswith("on") for name in attributes)
    assert "default-src 'none'" in page
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_every_link_leads_to_one_place(page):
    found = parsed(page).found
    ids = [attributes["id"] for _, attributes in found if attributes.get("id")]
    assert len(set(ids)) == len(ids)
    links = [a["href"][1:] for tag, a in found if tag == "a"]
    assert set(links) <= set(ids)
    assert len(links) > 40


def test_the_summary_comes_first(page):
    text = "".join(parsed(page).text)
    sections = re.findall(r'<section[^>]* id="([^"]+)"', page)
    assert sections[:3] == ["summary", "progress", "bench-acl_arc-tiny"]
    assert "MT-TARTAN, TAPT has the highest mean macro-F1" in text
    assert "On the test texts not in train (90 of 100) the highest mean is" in text


def test_every_run_has_its_folder_and_command(page):
    text = "".join(parsed(page).text)
    for name in ("ft", "tapt", "mt", "meta"):
        for seed in range(4):
            assert f"{name}/seed={seed}" in text
            assert f"tartan run +experiment={name} seed={seed}" in text


def test_text_from_runs_is_text(tmp_path):
    write_hostile(tmp_path / "runs")
    assert main([str(tmp_path / "runs")]) == 0
    page = (tmp_path / "runs" / "report" / "report.html").read_text(encoding="utf-8")
    elements = parsed(page)
    expected = {"#", "data:"}
    for tag, attributes in elements.found:
        assert "onerror" not in attributes
        assert "onmouseover" not in attributes
        if tag == "img":
            assert attributes["src"].startswith("data:image/svg+xml;base64,")
        if tag == "a":
            assert attributes["href"].startswith(tuple(expected))
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.DOTALL)
    assert not any("<script>window.hacked" in script for script in scripts)
    text = "".join(elements.text)
    assert "<script>window.hacked = true</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "49 " not in text.split("Options in which")[1][:4000]


def test_without_finished_runs_there_is_a_page_all_the_same(tmp_path, capsys):
    write_run(tmp_path / "a", None, config_of(result_of("finetune", 0, 0.5)))
    assert main([str(tmp_path)]) == 0
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "No run is finished yet" in page
    assert "1 stopped" in capsys.readouterr().out
