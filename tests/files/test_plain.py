"""YAML and JSON from elsewhere are plain data of bounded depth."""

from __future__ import annotations

import pytest

from tartan.errors import UserError
from tartan.files.plain import parse_yaml, read_yaml


@pytest.mark.parametrize(
    "text",
    ["a: " + "[" * 101 + "]" * 101, "[" * 10**6, "{a: " * 10**5, "- " * 5000 + "1"],
    ids=["one too deep", "lists", "mappings", "blocks"],
)
def test_yaml_that_is_nested_too_deeply_is_one_line(text, tmp_path):
    """The parser takes quadratic time for a million brackets."""
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match=r"^a\.yaml: lists and mappings are nested more than 100"):
        read_yaml(tmp_path / "a.yaml")


def test_yaml_of_a_usual_depth_is_read():
    assert parse_yaml("a: " + "[" * 90 + "]" * 90)["a"] == eval("[" * 90 + "]" * 90)
    assert parse_yaml("\n".join(f"k{i}: {{a: [1, 2]}}" for i in range(500)))["k7"] == {"a": [1, 2]}
