"""The comments of a config file, as its readers see them."""

from __future__ import annotations

from docs.builder.comments import read_comments

FILE = """\
# @package _global_
# What the file is for,
# on two lines.
size: 3 # how many # of them
# How wide
# it is.
width: 4
plain: 5
choice: # what is chosen
  one: 1 # the first
         # and only
  text: "a # in a text"
  list: [a, b] # two
"""


def test_a_comment_belongs_to_the_key_it_is_behind_or_above(tmp_path):
    (tmp_path / "file.yaml").write_text(FILE)
    comments = read_comments(tmp_path / "file.yaml")
    assert comments.head == "What the file is for, on two lines."
    assert comments.keys == {
        ("size",): "how many # of them",
        ("width",): "How wide it is.",
        ("choice",): "what is chosen",
        ("choice", "one"): "the first and only",
        ("choice", "list"): "two",
    }
