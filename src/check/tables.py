"""Prints the findings as tables of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import markup
from rich.console import Console
from rich.table import Table

from src.check.estimate import MethodEstimate
from src.check.findings import Findings
from src.check.lengths import Lengths
from src.check.vocabulary import MANY, MOST_UNKNOWN, REFERENCE, Vocabulary
from src.command_line.tables import titled_table
from src.data.overlap import WORDS
from src.errors import printable
from src.run_folder.duration import duration

_PLACES_SHOWN = 4
"""Maximum number of a text's places that are printed."""
_TEXTS_SHOWN = 3
"""Maximum number of repeated texts, and of near-duplicates of a split, that are shown."""
_START = 40
"""Number of characters of them that are shown."""
_MOST_LABELS = 20
"""Maximum number of rows in the table of labels: the most frequent and the rarest."""


def print_findings(found: Findings) -> None:
    """Print all tables, then the recommendation."""
    console = Console()
    title = f"{found.method} on {found.task}, {found.encoder}: what would be trained on"
    console.print(f"[bold]{escape(title)}[/bold]\n")
    console.print(_labels(found))
    _print_balance(found, console)
    if found.lengths:
        console.print(_lengths(found.lengths))
        sampled = [f.source for f in found.lengths if not f.whole]
        if sampled:
            some = ", ".join(sampled)
            _note(console, f"lengths of {some}: of a random sample; what is cut: of all")
        _note(console, "95 % up to: 95 % of the texts are no longer than this")
        _note(console, "cut at: the max_length set now; enough: one at which less than 1 % are cut")
        console.print()
    if found.repeated:
        console.print(_repeats(found))
        if found.lengths:
            _note(console, "in brackets: regardless of case and white space, where that is more")
        _note(console, "other label: train has the same, with other labels only")
        _print_overlap(found, console)
        console.print()
    if found.vocabulary:
        console.print(_vocabulary(found.vocabulary))
        _print_broken_words(found.vocabulary, console)
        console.print()
    console.print(_estimates(found))
    _print_basis(found, console)
    _print_recommendation(found, console)


def escape(text: str) -> str:
    """Return text with markup and control characters made harmless for the terminal."""
    return markup.escape(printable(text))


def _labels(found: Findings) -> Table:
    counts = found.counts
    splits = tuple(counts.splits)
    table = titled_table("examples of each label", "label", *splits)
    frame = counts.frame()
    half = _MOST_LABELS // 2
    several = len(frame) > _MOST_LABELS
    shown = [*frame.index[:half], *frame.index[-half:]] if several else list(frame.index)
    for number, label in enumerate(shown):
        if several and number == half:
            table.add_row(f"... {len(frame) - _MOST_LABELS} more", *("" for _ in splits))
        row = frame.loc[label]
        cells = [_with_share(int(row[s]), counts.of(s)) for s in splits]
        table.add_row(escape(str(label)), *cells)
    table.add_section()
    table.add_row("all", *(f"{counts.of(split):,}" + " " * 6 for split in splits))
    return table


def _with_share(count: int, of: int) -> str:
    return f"{count:,} {count / of:5.1%}" if of else f"{count:,}"


def _print_balance(found: Findings, console: Console) -> None:
    counts = found.counts
    (often, most), (rare, least) = counts.most("train"), counts.rarest("train")
    if most == least:
        line = f"every label has {most:,} examples in train"
    else:
        line = f"train: {often!r} has {counts.imbalance:.1f} times as many examples as {rare!r}"
    if found.unlabelled:
        line += f"\n{found.unlabelled:,} texts of the task have no label"
    _line(console, f"{line}\n")


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
    text = bool(found.lengths)
    thing = "texts" if text else "images"
    names = (
        f"{thing}\nof",
        "number",
        "repeats\nwithin",
        "also in\ntrain",
        "also in\ndev",
        "other\nlabel",
    )
    table = titled_table(f"{thing} that occur more than once", *names)
    for corpus in found.corpora:
        table.add_column(f"also in\n{escape(corpus.auxiliary)}", justify="right")
    inside = {repeat.split: repeat for repeat in found.repeated}
    across = {(pair.split, pair.other): pair for pair in found.shared}
    for split, own in inside.items():
        cells = [f"{own.examples:,}", _both(own.exact, own.folded, text)]
        for other in ("train", "dev"):
            pair = across.get((split, other))
            cells.append("" if pair is None else _both(pair.exact, pair.folded, text))
        with_train = across.get((split, "train"))
        other_label = own.contradicted if with_train is None else with_train.other_label
        cells.append(_or_dash(other_label))
        cells += [
            _both(corpus.exact[split], corpus.folded[split], text) if split in corpus.exact else ""
            for corpus in found.corpora
        ]
        table.add_row(split, *cells)
    for corpus in found.corpora:
        about = "" if corpus.whole else "of a sample of "
        cells = [f"{about}{corpus.texts:,}", _or_dash(corpus.repeated)]
        table.add_row(escape(corpus.auxiliary), *cells)
    return table


def _print_overlap(found: Findings, console: Console) -> None:
    """Print where texts repeat or nearly do, and the corpora that overlap with dev and test."""
    if found.same:
        several = sum(same.contradictory for same in found.same)
        labels = f", {several:,} with different labels" if several else ""
        count = (
            "1 text repeats or is"
            if len(found.same) == 1
            else f"{len(found.same):,} texts repeat or are"
        )
        rest = " (output=FILE has all)" if len(found.same) > _TEXTS_SHOWN else ""
        _line(console, f"{count} blank{labels}{rest}:")
    for same in found.same[:_TEXTS_SHOWN]:
        start = " ".join(same.text.split())[:_START] or "(blank)"
        more = "" if len(same.places) <= _PLACES_SHOWN else ", ..."
        places = ", ".join(map(str, same.places[:_PLACES_SHOWN]))
        _line(console, f"  {places}{more}: {start}")
    for split in found.counts.splits:
        near = [one for one in found.near if one.split == split]
        if near:
            of = f"{len(near):,} of {found.counts.of(split):,} {split} texts"
            _line(console, f"{of} are nearly equal to one of train:")
        for one in near[:_TEXTS_SHOWN]:
            start = " ".join(one.text.split())[:_START]
            places = f"{split} {one.index + 1}, train {one.other_index + 1}"
            if one.number is not None:
                places = f"lines {one.number} ({split}) and {one.other_number} (train)"
            _line(console, f"  {one.similarity:.0%} the same: {places}: {start}")
    for corpus in found.corpora:
        if corpus.sharing:
            share = f"{corpus.sharing:,} of {corpus.texts:,} texts of {corpus.auxiliary}"
            _line(console, f"{share} share {WORDS} words in a row with dev or test;")
            _line(console, "auxiliary.decontaminate=true leaves them out")


def _both(exact: int, folded: int, text: bool) -> str:
    if folded == exact or not text:
        return _or_dash(exact)
    return f"{exact:,} ({folded:,})"


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


def _print_broken_words(vocabulary: Sequence[Vocabulary], console: Console) -> None:
    _note(console, "pieces: what the encoder breaks words into; a frequent word is one piece")
    _note(console, "x general English: pieces per word, as a multiple of those of everyday")
    _note(console, f"sentences (src/check/{REFERENCE.name})")
    for found in vocabulary[1:]:
        if not found.comparable:
            _line(console, f"{found.source}: words are not set apart by spaces; not compared")
        elif found.unknown >= MOST_UNKNOWN:
            _line(console, f"{found.source}: too many words are unknown; not compared")
        elif found.most_broken:
            _line(console, f"words in pieces in {found.source}: {', '.join(found.most_broken)}")


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


def _print_basis(found: Findings, console: Console) -> None:
    machine = found.measured.machine
    unit = "tokens with padding" if found.lengths else "images"
    measured = sum(rate.measured for rate in found.measured.rates.values())
    has = "" if found.memory is None else f"; this machine: {_gib(found.memory)}"
    is_compared = any(method.with_baseline for method in found.estimates)
    baseline = ["its time includes fine-tuning at equal cost (fine_tuning_baseline)"]
    for line in (
        "* the method of this command; below each method, its stages one after the other",
        *(baseline if is_compared else []),
        f"measured: {measured:,} {unit}, forwards and backwards, {machine.device}, "
        f"{machine.precision}",
        "time: of passes, updates and evaluations; it is a range where a stage may end",
        "early (patience); the rest of a step takes up to 15 % more",
        f"memory: what is trained and computed; the program: {_gib(found.process)}{has}",
    ):
        _note(console, line)
    for name, why in found.missing.items():
        _note(console, f"{name}: {why}")


def _print_recommendation(found: Findings, console: Console) -> None:
    advice = found.recommendation
    console.print(f"\n[bold]Begin with {escape(' '.join(advice.options))}[/bold]", highlight=False)
    times = {method.name: _range(method) for method in found.estimates}
    if advice.method in times:
        baseline = times.get("finetune", "")
        beside = f"; fine-tuning: {baseline}" if baseline and advice.method != "finetune" else ""
        _item(console, f"estimated time on this machine: {times[advice.method]}{beside}")
    for reason in advice.reasons:
        _item(console, reason)
    if advice.warnings:
        console.print("\n[bold]Look out[/bold]")
        for warning in advice.warnings:
            _item(console, warning)
    said = [*found.remarks, *(f"auxiliary {n}: {why}" for n, why in found.unusable.items())]
    if said:
        console.print("\n[bold]Remarks[/bold]")
        for remark in said:
            _item(console, remark)


def _item(console: Console, text: str) -> None:
    wrapped = textwrap.fill(
        text, console.width - 1, initial_indent="- ", subsequent_indent="  ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    # already wrapped, and an option must not be broken, so that it can be copied
    console.print(escape(wrapped), highlight=False, soft_wrap=True)


def _line(console: Console, text: str) -> None:
    console.print(escape(text), highlight=False)


def _note(console: Console, text: str) -> None:
    console.print(f"[dim]{escape(text)}[/dim]", highlight=False)
