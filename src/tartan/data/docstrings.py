"""Builds an end task without a network: which library a paragraph of documentation is from.

The paragraphs are the docstrings of libraries that are installed with the project (networkx and
sympy are torch's own dependencies), read by parsing their source (never by importing it), with the
libraries' names masked. They are not shipped as a file: all 80,000, of which `auxiliary.size`
chooses, take 2.6 MB even when compressed.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tartan.core.seeding import generator_for
from tartan.data.text_task import TaskFiles, TextSource
from tartan.errors import UserError
from tartan.settings import Count

_VERSION = "1"
"""Part of the cache key; raise it when the extraction changes."""
_SKIPPED_FOLDERS = {"tests", "test", "testing", "_vendor", "vendor", "externals", "extern"}
_SHORTEST, _LONGEST = 50, 600
"""Least and greatest length of a paragraph after its white space is folded [characters]."""
_LONG_ALIAS = 5
"""Aliases of at least so many characters are masked inside words too."""
_PROSE = 0.7
"""Least share of letters and spaces in a paragraph."""


@dataclass(frozen=True)
class Library:
    """A library whose docstrings make one class.

    Attributes:
        package: import name, which is also the label.
        distribution: name of the installed distribution whose version is recorded.
        aliases: words that would give the library away; they are masked regardless of case.
    """

    package: str
    distribution: str
    aliases: Sequence[str]


@dataclass(frozen=True)
class DocstringsTask(TextSource):
    """Docstring paragraphs: a balanced choice of them is labelled, the others are domain text.

    The choice depends on the libraries' versions and on `split_seed` only; dev and test
    paragraphs are never in the domain text.

    Attributes:
        cache_dir: folder for the extracted files.
        libraries: the libraries, one class each.
        train_per_class: labelled paragraphs of each class to train on [paragraphs].
        dev_per_class: the same for validation [paragraphs].
        test_per_class: the same for the test [paragraphs].
    """

    cache_dir: str
    libraries: Sequence[Library]
    train_per_class: Count = 30
    dev_per_class: Count = 50
    test_per_class: Count = 100

    def files(self) -> TaskFiles:
        """Return the labelled files, built on first use."""
        folder = self._folder()
        return TaskFiles(*(folder / f"{split}.jsonl" for split in ("train", "dev", "test")))

    def domain_file(self, size: float | None) -> Path:
        """Return the file of unlabelled paragraphs, in a fixed random order, for any size."""
        return self._folder() / "domain.txt"

    def versions(self) -> dict[str, str]:
        """Return the version of each library, by distribution."""
        names = [library.distribution for library in self.libraries]
        try:
            return {name: importlib.metadata.version(name) for name in names}
        except importlib.metadata.PackageNotFoundError as error:
            raise UserError(f"task docstrings: {error}; install it") from error

    def _folder(self) -> Path:
        settings = {
            "version": _VERSION,
            "libraries": [
                [lib.package, lib.distribution, list(lib.aliases)] for lib in self.libraries
            ],
            "installed": self.versions(),
            "sizes": [self.train_per_class, self.dev_per_class, self.test_per_class],
            "seed": self.split_seed,
        }
        text = json.dumps(settings, sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        root = Path(self.cache_dir).expanduser() / "docstrings"
        root.mkdir(parents=True, exist_ok=True)
        folder = root / key
        with FileLock(root / f"{key}.lock"):
            if not folder.is_dir():
                self._build(folder, text)
        return folder

    def _build(self, folder: Path, settings: str) -> None:
        mask = alias_pattern([alias for lib in self.libraries for alias in lib.aliases])
        gc.disable()  # it finds no cycles in syntax trees, and doubles the time
        try:
            by_library = {
                lib.package: list(dict.fromkeys(_paragraphs(lib.package, mask)))
                for lib in self.libraries
            }
        finally:
            gc.enable()
        libraries_of = Counter(text for texts in by_library.values() for text in texts)
        sizes = (self.train_per_class, self.dev_per_class, self.test_per_class)
        labelled: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
        unlabelled: list[str] = []
        for package, texts in by_library.items():
            own = [text for text in texts if libraries_of[text] == 1]
            if len(own) <= sum(sizes):
                raise UserError(
                    f"task docstrings: {package} has only {len(own)} paragraphs; lower "
                    "task.*_per_class"
                )
            order = generator_for(self.split_seed, "docstrings", package).permutation(len(own))
            rest = iter(order)
            for lines, size in zip(labelled.values(), sizes, strict=True):
                examples = [{"text": own[next(rest)], "label": package} for _ in range(size)]
                lines += [json.dumps(example) for example in examples]
            unlabelled += [own[i] for i in rest]
        order = generator_for(self.split_seed, "docstrings", "domain").permutation(len(unlabelled))
        scratch = Path(tempfile.mkdtemp(dir=folder.parent))
        for split, lines in labelled.items():
            (scratch / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        domain = "".join(unlabelled[i] + "\n" for i in order)
        (scratch / "domain.txt").write_text(domain, encoding="utf-8")
        (scratch / "settings.json").write_text(settings, encoding="utf-8")
        scratch.chmod(0o755)  # the cache may be shared; temporary folders are private
        scratch.replace(folder)


def alias_pattern(aliases: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern to mask: long aliases anywhere (`to_numpy`), short ones as words."""
    alternatives = [
        re.escape(alias)
        if len(alias) >= _LONG_ALIAS
        else rf"(?<![^\W\d_]){re.escape(alias)}(?![^\W\d_])"
        for alias in sorted(filter(None, aliases), key=len, reverse=True)
    ]
    nothing = r"(?!)"
    return re.compile("|".join(alternatives) or nothing, flags=re.IGNORECASE)


def _paragraphs(package: str, mask: re.Pattern[str]) -> Iterator[str]:
    """Yield the masked prose paragraphs of all docstrings of `package`, ordered by path."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"task docstrings: the package {package} is not installed")
    folder = Path(next(iter(spec.submodule_search_locations)))
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # templates and files for other Python versions
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield docstring
            pending.extend(reversed(node.body))
        elif isinstance(node, ast.If | ast.Try):
            pending.extend(reversed(node.body))


def _is_prose(text: str) -> bool:
    if not _SHORTEST <= len(text) <= _LONGEST or text.startswith((">>>", "..", "#", "|", "+-")):
        return False
    letters = sum(character.isalpha() or character == " " for character in text)
    return letters >= _PROSE * len(text) and ">>>" not in text and "----" not in text
