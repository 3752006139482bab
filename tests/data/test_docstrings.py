"""The task built from docstrings, on two small libraries made up for the test."""

from __future__ import annotations

import sys

import pytest

from tartan.data.docstrings import DocstringsTask, docstrings
from tartan.errors import UserError

SHARED = "This paragraph is word for word the same in both of the libraries that are here."
COLOURS = {"alphalib": "red", "betalib": "blue"}  # stays when the name is masked
LIBRARIES = {"alphalib": ["alphalib", "al"], "betalib": ["betalib"]}


def make_library(folder, name):
    """A package that must not be imported, with 20 different paragraphs and some odd files."""
    package = folder / name
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    texts = [
        f"A function of {name} tells how {COLOURS[name]} the {season} is in the {place} today."
        for season in ("spring", "summer", "autumn", "winter")
        for place in ("forest", "meadow", "valley", "harbour", "island")
    ]
    functions = "\n\n".join(
        f'def f{i}():\n    """{text}\n\n    {SHARED}\n\n    >>> f{i}()\n    """'
        for i, text in enumerate(texts)
    )
    (package / "functions.py").write_text(f"import nothing_there\n\n{functions}\n")
    broken = f'"""A file with a syntax error is of {name} and gives no paragraph to anybody."""\n'
    (package / "broken.py").write_text(f"{broken}def (:\n")
    (package / "tests" / "test_it.py").write_text(broken)
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    for name in LIBRARIES:
        make_library(folder, name)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def task_of(cache, **options):
    sizes = {"train_per_class": 4, "dev_per_class": 3, "test_per_class": 5, **options}
    return DocstringsTask("docstrings", "macro_f1", 64, str(cache), LIBRARIES, **sizes)


def domain_lines(task):
    return task.domain_file(1).read_text().splitlines()


def every_text(task):
    end_task = task.load()
    labelled = [*end_task.train.texts, *end_task.dev.texts, *end_task.test.texts]
    return labelled + domain_lines(task)


def test_labelled_paragraphs_are_balanced_and_the_rest_is_domain_text(site, tmp_path):
    task = task_of(tmp_path / "cache")
    end_task = task.load()
    assert end_task.labels == ("alphalib", "betalib")
    for split, size in (("train", 4), ("dev", 3), ("test", 5)):
        labels = getattr(end_task, split).labels
        assert (labels.count(0), labels.count(1)) == (size, size)
    assert len(domain_lines(task)) == 2 * (20 - 12)
    with pytest.raises(UserError, match=r"alphalib has only 20 paragraphs"):
        task_of(tmp_path / "cache", test_per_class=13).load()


def test_the_names_of_the_libraries_are_masked_whatever_their_case(site, tmp_path):
    (site / "alphalib" / "extra.py").write_text(
        '"""Take AlphaLib or AL with BETALIB, but leave almond and altogether be."""'
    )
    texts = every_text(task_of(tmp_path / "cache"))
    assert "Take library or library with library, but leave almond and altogether be." in texts
    assert len(texts) == len(set(texts)) == 41
    assert SHARED not in texts
    assert not {"alphalib", "betalib"} & set(sys.modules)
    assert sum("of library tells" in text for text in texts) == 40


def test_a_new_version_of_a_library_is_read_anew(site, tmp_path):
    before = every_text(task_of(tmp_path / "cache"))
    assert before == every_text(task_of(tmp_path / "another"))
    metadata = site / "alphalib-1.2.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("Version: 1.2", "Version: 1.3"))
    new = '"""A text that is new in this version of the package of all."""'
    (site / "alphalib" / "new.py").write_text(new)
    assert len(every_text(task_of(tmp_path / "cache"))) == len(before) + 1


def test_docstrings_come_in_source_order_from_every_nested_definition(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        '"""one"""\n'
        'class A:\n    """two"""\n    def f(self):\n        """three"""\n'
        'try:\n    async def g():\n        """four"""\nexcept ImportError:\n    pass\n'
        "x = '''not a docstring'''\n"
        "def h():\n    return 1\n"
    )
    assert list(docstrings(path)) == ["one", "two", "three", "four"]
