"""What a build finds damaged goes into no corpus."""

from __future__ import annotations

import shutil

import pytest

import src.build_corpus.build
from src.errors import UserError
from tests.build_corpus.made_up import built, contents, write_articles


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def articles(tmp_path_factory):
    return write_articles(tmp_path_factory.mktemp("articles") / "in", articles=10)


@pytest.fixture(scope="module")
def halves(articles, tmp_path_factory):
    """Folders of builds that were killed, by the step that they did not come to."""
    folder = tmp_path_factory.mktemp("half")
    original = src.build_corpus.build._steps

    def killed_at(name):
        def steps(*args):
            for step in original(*args):
                if step[0] == name:
                    raise Killed
                yield step

        return steps

    found = {}
    for name in ("repeats", "buckets", "shards", "manifest"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(src.build_corpus.build, "_steps", killed_at(name))
            with pytest.raises(Killed):
                built(articles, folder / name, near_duplicates=True)
        found[name] = folder / name
    return found


def files_of(folder):
    return [
        path.relative_to(folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size and "logs" not in path.parts
    ]


@pytest.mark.parametrize("step", ["repeats", "buckets", "shards", "manifest"])
def test_each_file_that_is_damaged_is_named_with_what_to_remove(step, halves, articles, tmp_path):
    names = files_of(halves[step])
    assert len(names) > 8
    copy = tmp_path / "copy"
    shutil.copytree(halves[step], copy)
    for name in names[:: max(1, len(names) // 25)]:
        content = (copy / name).read_bytes()
        for damaged in (content[: len(content) // 2], bytes([content[0] ^ 1]) + content[1:]):
            (copy / name).write_bytes(damaged)
            with pytest.raises(UserError, match=rf"; remove {copy}, and the same command"):
                built(articles, copy, near_duplicates=True)
        (copy / name).write_bytes(content)
    built(articles, tmp_path / "whole", near_duplicates=True)
    built(articles, copy, near_duplicates=True)
    assert contents(copy) == contents(tmp_path / "whole")


def test_a_manifest_that_is_damaged_before_anybody_looked_is_written_again(
    articles, tmp_path, monkeypatch
):
    whole = tmp_path / "whole"
    built(articles, whole)
    with monkeypatch.context() as patch:
        patch.setattr(src.build_corpus.build.Building, "remove", killed)
        with pytest.raises(Killed):
            built(articles, tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text().replace('"words"', '"w0rds"'))
    built(articles, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(whole)


def killed(self):
    if (self.output / "manifest.json").exists():
        raise Killed


def test_what_is_left_of_a_folder_that_was_being_removed_does_not_count(articles, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(write_half(articles, tmp_path), out)
    (out / "building" / "begun.json").unlink()
    built(articles, out)
    built(articles, tmp_path / "whole")
    assert contents(out) == contents(tmp_path / "whole")


def write_half(articles, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(src.build_corpus.build, "write_repeats", None)
        with pytest.raises(TypeError):
            built(articles, tmp_path / "half")
    (tmp_path / "half" / "building" / "sources-00000.arrow").unlink()
    return tmp_path / "half"


def test_a_line_without_an_end_is_named(articles, tmp_path, monkeypatch):
    monkeypatch.setattr(src.build_corpus.parts, "LONGEST_RECORD", 1000)
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": "' + "a" * 2000 + '"}\n')
    with pytest.raises(UserError, match=r"in\.jsonl, line 2: longer than .* no record may be"):
        built(tmp_path / "in.jsonl", tmp_path / "out")
