"""Prints the findings as tables of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from rich import markup
from rich.console import Console
from rich.table import Table

from tartan.check.estimate import MethodEstimate
from tartan.check.findings import Findings
from tartan.check.lengths import Lengths
from tartan.check.recommendation import Recommendation
from tartan.check.vocabulary import MANY, MOST_UNKNOWN, REFERENCE, Vocabulary
from tartan.command_line.tables import titled_table
from tartan.data.overlap import WORDS
from tartan.errors import printable
from tartan.run_folder.duration import duration

_PLACES_SHOWN = 4
"""Maximum number of a text's places that are printed."""
_TEXTS_SHOWN = 3
"""Maximum number of repeated texts, and of near-duplicates of a split, that are shown."""
_START = 40
"""Number of characters of them that are shown."""
_MOST_LABELS = 20
"""Maximum number of rows in the table of labels: the most frequent and the rarest."""


def print_findings(found: Findings, advice: Recommendation) -> None:
    """Print all tables, then the recommendation."""
    console = Console()
    title = f"{found.method} on {found.task}, {found.encoder}: what would be trained on"
    console.print(f"[bold]{escape(title)}[/bold]\n")
    console.print(_labels(found))
    _print(console, _balance(found))
    if found.lengths:
        console.print(_lengths(found.lengths))
        sampled = [one.source for one in found.lengths if not one.whole]
        if sampled:
            _note(
                console, f"lengths of {', '.join(sampled)}: of a random sample; what is cut: of all"
            )
        _note(console, "95 % up to: 95 % of the texts are no longer than this")
        _note(
            console, "cut at: the max_length set now; enough: one at which less than 1 % are cut\n"
        )
    if found.repeated:
        console.print(_repeats(found))
        if found.lengths:
            _note(console, "in brackets: regardless of case and white space, where that is more")
        _note(console, "other label: train has the same, with other labels only")
        _print(console, _overlap(found))
    if found.vocabulary:
        console.print(_vocabulary(found.vocabulary))
        _note(console, "pieces: what the encoder breaks words into; a frequent word is one piece")
        _note(console, "x general English: pieces per word, as a multiple of those of everyday")
        _note(console, f"sentences (src/tartan/check/{REFERENCE.name})")
        _print(console, _broken_words(found.vocabulary))
    console.print(_estimates(found))
    for line in _basis(found):
        _note(console, line)
    times = {method.name: _range(method) for method in found.estimates}
    reasons = advice.reasons
    if advice.method in times:
        baseline = times.get("finetune", "")
        beside = f"; fine-tuning: {baseline}" if baseline and advice.method != "finetune" else ""
        reasons = [f"estimated time on this machine: {times[advice.method]}{beside}", *reasons]
    _print_items(console, f"Begin with {' '.join(advice.options)}", reasons)
    _print_items(console, "Look out", advice.warnings)
    unusable = [f"auxiliary {name}: {why}" for name, why in found.unusable.items()]
    _print_items(console, "Remarks", [*found.remarks, *unusable])


def escape(text: str) -> str:
    """Return text with markup and control characters made harmless for the terminal."""
    return markup.escape(printable(text))


def _labels(found: Findings) -> Table:
    counts = found.counts
    table = titled_table("examples of each label", "label", *counts.splits)
    rows = [
        [str(label), *(_with_share(int(row[split]), counts.of(split)) for split in counts.splits)]
        for label, row in counts.frame().iterrows()
    ]
    if len(rows) > _MOST_LABELS:
        half = _MOST_LABELS // 2
        rows[half:-half] = [[f"... {len(rows) - _MOST_LABELS} more"]]
    for label, *cells in rows:
        table.add_row(escape(label), *cells)
    table.add_section()
    table.add_row("all", *(f"{counts.of(split):,}" + " " * 6 for split in counts.splits))
    return table


def _with_share(count: int, of: int) -> str:
    return f"{count:,} {count / of:5.1%}" if of else f"{count:,}"


def _balance(found: Findings) -> Iterator[str]:
    counts = found.counts
    (often, most), (rare, least) = counts.most("train"), counts.rarest("train")
    if most == least:
        yield f"every label has {most:,} examples in train"
    else:
        yield f"train: {often!r} has {counts.imbalance:.1f} times as many examples as {rare!r}"
    if found.unlabelled:
        yield f"{found.unlabelled:,} texts of the task have no label"


def _lengths(lengths: Sequence[Lengths]) -> Table:
    table = titled_table(
        "lengths in tokens, and what is lost where longer texts are cut",
        "texts\nof", "number", "median", "95 %\nup to", "longest", "cut\nat", "texts\ncut",
        "tokens\nlost", "enough",
    )  # fmt: skip
    for found in lengths:
        table.add_row(
            escape(found.source), f"{found.texts:,}", f"{found.median:.0f}", f"{found.p95:.0f}",
            f"{found.longest:,}", str(found.max_length), _share(found.cut), _share(found.lost),
            f"{found.enough:,}",
        )  # fmt: skip
    return table


def _share(share: float) -> str:
    return "-" if share == 0 else "<0.1%" if share < 0.001 else f"{share:.1%}"


def _repeats(found: Findings) -> Table:
    things = "texts" if found.lengths else "images"
    table = titled_table(
        f"{things} that occur more than once",
        f"{things}\nof", "number", "repeats\nwithin", "also in\ntrain", "also in\ndev",
        "other\nlabel", *(f"also in\n{escape(corpus.auxiliary)}" for corpus in found.corpora),
    )  # fmt: skip
    for own in found.repeated:
        pairs = {pair.other: pair for pair in found.shared if pair.split == own.split}
        others = [pairs.get("train"), pairs.get("dev")]
        contradicted = pairs["train"].other_label if "train" in pairs else own.contradicted
        table.add_row(
            own.split,
            f"{own.examples:,}",
            _both(own.exact, own.folded),
            *("" if pair is None else _both(pair.exact, pair.folded) for pair in others),
            _or_dash(contradicted),
            *(
                _both(corpus.exact[own.split], corpus.folded[own.split])
                for corpus in found.corpora
                if own.split in corpus.exact
            ),
        )
    for corpus in found.corpora:
        about = "" if corpus.whole else "of a sample of "
        cells = [f"{about}{corpus.texts:,}", _or_dash(corpus.repeated)]
        table.add_row(escape(corpus.auxiliary), *cells)
    return table


def _overlap(found: Findings) -> Iterator[str]:
    """Yield where texts repeat or nearly do, and the corpora that overlap with dev and test."""
    if found.same:
        several = sum(same.contradictory for same in found.same)
        labels = f", {several:,} with different labels" if several else ""
        count = f"{len(found.same):,} texts repeat or are"
        rest = " (output=FILE has all)" if len(found.same) > _TEXTS_SHOWN else ""
        yield f"{'1 text repeats or is' if len(found.same) == 1 else count} blank{labels}{rest}:"
    for same in found.same[:_TEXTS_SHOWN]:
        more = "" if len(same.places) <= _PLACES_SHOWN else ", ..."
        places = ", ".join(map(str, same.places[:_PLACES_SHOWN]))
        yield f"  {places}{more}: {_start_of(same.text)}"
    for split in found.counts.splits:
        near = [one for one in found.near if one.split == split]
        if near:
            of = f"{len(near):,} of {found.counts.of(split):,} {split} texts"
            yield f"{of} are nearly equal to one of train:"
        for one in near[:_TEXTS_SHOWN]:
            places = f"{split} {one.index + 1}, train {one.other_index + 1}"
            if one.number is not None:
                places = f"lines {one.number} ({split}) and {one.other_number} (train)"
            yield f"  {one.similarity:.0%} the same: {places}: {_start_of(one.text)}"
    for corpus in found.corpora:
        if corpus.sharing:
            share = f"{corpus.sharing:,} of {corpus.texts:,} texts of {corpus.auxiliary}"
            yield f"{share} share {WORDS} words in a row with dev or test;"
            yield "auxiliary.decontaminate=true leaves them out"


def _start_of(text: str) -> str:
    return " ".join(text.split())[:_START] or "(blank)"


def _both(exact: int, folded: int) -> str:
    return _or_dash(exact) if folded == exact else f"{exact:,} ({folded:,})"


def _or_dash(count: int) -> str:
    return f"{count:,}" if count else "-"


def _vocabulary(vocabulary: Sequence[Vocabulary]) -> Table:
    table = titled_table(
        "how the encoder's vocabulary fits",
        "texts of", "words", "pieces\nper word", f"words in {MANY}\npieces or more",
        "words\nunknown", "x general\nEnglish",
    )  # fmt: skip
    reference = vocabulary[0]
    for found in vocabulary:
        times = None if found is reference else found.times(reference)
        table.add_row(
            escape(found.source), f"{found.words:,}", f"{found.pieces:.2f}", _share(found.broken),
            _share(found.unknown),
            "" if times is None else f"{times:.2f}",
        )  # fmt: skip
    return table


def _broken_words(vocabulary: Sequence[Vocabulary]) -> Iterator[str]:
    for found in vocabulary[1:]:
        if not found.comparable:
            yield f"{found.source}: words are not set apart by spaces; not compared"
        elif found.unknown >= MOST_UNKNOWN:
            yield f"{found.source}: too many words are unknown; not compared"
        elif found.most_broken:
            yield f"words in pieces in {found.source}: {', '.join(found.most_broken)}"


def _estimates(found: Findings) -> Table:
    table = Table(
        title="estimated time and memory on this machine", title_justify="left", title_style="bold",
        show_edge=False, box=None, padding=(0, 2, 0, 0),
    )  # fmt: skip
    table.add_column("method", no_wrap=True)
    for name in ("steps", "batch", "passes\nper step", "seconds\nper step", "time", "memory\nGiB"):
        table.add_column(name, justify="right", no_wrap=True)
    for method in found.estimates:
        name = f"{method.name} *" if method.configured else method.name
        cells = ["", "", "", "", _range(method), _gib(method.bytes)]
        table.add_row(escape(name), *cells, style="bold" if method.configured else "")
        for stage in method.stages:
            table.add_row(
                escape(f"  {stage.name}"), f"{stage.steps:,}", f"{stage.batch_size:,}",
                str(stage.passes), _seconds(stage.step_seconds), style="dim",
            )  # fmt: skip
    return table


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"


def _range(method: MethodEstimate) -> str:
    least, most = duration(method.least_seconds), duration(method.seconds)
    return most if least == most else f"{least} to {most}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}" if size >= 2**30 / 20 else "<0.1"


def _basis(found: Findings) -> Iterator[str]:
    machine = found.measured.machine
    unit = "tokens with padding" if found.lengths else "images"
    measured = sum(rate.measured for rate in found.measured.rates.values())
    has = "" if found.memory is None else f"; this machine: {_gib(found.memory)}"
    yield "* the method of this command; below each method, its stages one after the other"
    if any(method.with_baseline for method in found.estimates):
        yield "its time includes fine-tuning at equal cost (fine_tuning_baseline)"
    passes = f"{measured:,} {unit}, forwards and backwards"
    yield f"measured: {passes}, {machine.device}, {machine.precision}"
    yield "time: of passes, updates and evaluations; it is a range where a stage may end"
    yield "early (patience); the rest of a step takes up to 15 % more"
    yield f"memory: what is trained and computed; the program: {_gib(found.process)}{has}"
    for name, why in found.missing.items():
        yield f"{name}: {why}"


def _print_items(console: Console, title: str, items: Sequence[str]) -> None:
    if items:
        console.print(f"\n[bold]{escape(title)}[/bold]", highlight=False)
    for text in items:
        wrapped = textwrap.fill(
            text, console.width - 1, initial_indent="- ", subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        # already wrapped, and an option must not be broken, so that it can be copied
        console.print(escape(wrapped), highlight=False, soft_wrap=True)


def _print(console: Console, lines: Iterable[str]) -> None:
    """Print a paragraph, and a blank line after it."""
    console.print(escape("".join(f"{line}\n" for line in lines)), highlight=False)


def _note(console: Console, text: str) -> None:
    console.print(f"[dim]{escape(text)}[/dim]", highlight=False)
