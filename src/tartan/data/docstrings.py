"""Builds an end task without a network: which library a paragraph of documentation is from."""

import ast
import gc
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from tartan.core.seeding import generator_for
from tartan.data.corpus import cached_file
from tartan.data.table import Table, table_of_rows
from tartan.data.text_task import SPLITS, TextSource
from tartan.errors import UserError
from tartan.settings import Count

_VERSION = "2"  # part of the cache key; raise it when the extraction changes
_SKIPPED_FOLDERS = {"tests", "test", "testing", "_vendor", "vendor", "externals", "extern"}
_SHORTEST, _LONGEST = 50, 600
"""Least and greatest length of a paragraph after its white space is folded [characters]."""
_LONG_ALIAS = 5  # aliases of at least so many characters are masked inside words too (`to_numpy`)
_PROSE = 0.7  # least share of letters and spaces in a paragraph


@dataclass(frozen=True)
class DocstringsTask(TextSource):
    """Docstring paragraphs: a balanced choice of them is labelled, the others are domain text.

    They are of libraries that are installed with the project, whose source is parsed, never
    imported. The choice depends on the libraries' versions and on `split_seed` only.

    Attributes:
        cache_dir: folder for the extracted texts.
        libraries: for each package, whose name is a class, words that would give it away; they are
            masked regardless of case. The first is the distribution, whose version decides the
            texts.
        train_per_class: labelled paragraphs of each class to train on [paragraphs].
        dev_per_class: the same for validation [paragraphs].
        test_per_class: the same for the test [paragraphs].
    """

    cache_dir: str
    libraries: Mapping[str, Sequence[str]]
    train_per_class: Count = 30
    dev_per_class: Count = 50
    test_per_class: Count = 100

    def tables(self) -> Mapping[str, Table]:
        rows, _ = self._drawn
        return {split: table_of_rows(f"docstrings {split}", rows[split]) for split in SPLITS}

    def domain_file(self, size: float | None) -> Path:
        """Return the file of unlabelled paragraphs, in a fixed random order, for any size."""
        content = "".join(text + "\n" for text in self._drawn[1]).encode()
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.txt"
        return cached_file(self._folder / name, lambda path: path.write_bytes(content))

    @property
    def _folder(self) -> Path:
        return Path(self.cache_dir).expanduser() / "docstrings"

    @cached_property
    def _drawn(self) -> tuple[dict[str, list[tuple[str, str]]], list[str]]:
        """The texts and labels of each split, and all other paragraphs."""
        by_library = self._paragraphs()
        occurrences = Counter(text for texts in by_library.values() for text in texts)
        sizes = (self.train_per_class, self.dev_per_class, self.test_per_class)
        labelled: dict[str, list[tuple[str, str]]] = {split: [] for split in SPLITS}
        others: list[str] = []
        for package, texts in by_library.items():
            unique = [text for text in texts if occurrences[text] == 1]
            if len(unique) <= sum(sizes):
                raise UserError(f"task docstrings: {package} has only {len(unique)} paragraphs")
            rest = iter(_shuffled(unique, self.split_seed, package))
            for split, size in zip(SPLITS, sizes, strict=True):
                labelled[split] += [(text, package) for text in islice(rest, size)]
            others += rest
        return labelled, _shuffled(others, self.split_seed, "domain")

    def _paragraphs(self) -> dict[str, list[str]]:
        """Return the different paragraphs of each library, from the cache or its source."""
        versions = [importlib.metadata.version(names[0]) for names in self.libraries.values()]
        settings = json.dumps([_VERSION, versions, {**self.libraries}])
        key = hashlib.sha256(settings.encode()).hexdigest()[:16]

        def write(path: Path) -> None:
            mask = _alias_pattern([name for names in self.libraries.values() for name in names])
            gc.disable()  # it finds no cycles in syntax trees, and doubles the time
            found = {p: list(dict.fromkeys(_paragraphs_of(p, mask))) for p in self.libraries}
            gc.enable()
            path.write_text(json.dumps(found), encoding="utf-8")

        texts: dict[str, list[str]] = json.loads(
            cached_file(self._folder / f"{key}.json", write).read_bytes()
        )
        return texts


def _shuffled(texts: Sequence[str], seed: int, name: str) -> list[str]:
    order = generator_for(seed, "docstrings", name).permutation(len(texts))
    return [texts[i] for i in order]


def _alias_pattern(aliases: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern to mask: long aliases anywhere, short ones as words."""
    longest_first = sorted(aliases, key=len, reverse=True)
    alternatives = [
        re.escape(alias)
        if len(alias) >= _LONG_ALIAS
        else rf"(?<![^\W\d_]){re.escape(alias)}(?![^\W\d_])"
        for alias in longest_first
    ]
    return re.compile("|".join(alternatives), flags=re.IGNORECASE)


def _paragraphs_of(package: str, mask: re.Pattern[str]) -> Iterator[str]:
    """Yield the masked prose paragraphs of all docstrings of `package`, ordered by path."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0])
    for path in sorted(folder.rglob("*.py")):
        if _SKIPPED_FOLDERS.isdisjoint(path.relative_to(folder).parts[:-1]):
            for docstring in docstrings(path):
                for paragraph in re.split(r"\n\s*\n", docstring):
                    text = " ".join(paragraph.split())
                    if _is_prose(text):
                        yield mask.sub("library", text)


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of the module, its classes and its functions, in source order."""
    try:
        with warnings.catch_warnings(action="ignore"):  # invalid escapes in other people's strings
            pending: list[ast.AST] = [ast.parse(path.read_bytes())]
    except (SyntaxError, ValueError):
        return  # templates and files for other Python versions
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield docstring
        elif not isinstance(node, ast.If | ast.Try):
            continue
        pending.extend(reversed(node.body))


def _is_prose(text: str) -> bool:
    if not _SHORTEST <= len(text) <= _LONGEST or text.startswith((">>>", "..", "#", "|", "+-")):
        return False
    letters = sum(character.isalpha() or character == " " for character in text)
    return letters >= _PROSE * len(text) and ">>>" not in text and "----" not in text
