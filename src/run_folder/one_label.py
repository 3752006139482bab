"""Says so where a classifier gave everything the same label."""

from __future__ import annotations

from src.run_folder.result import Result


def one_label_remark(result: Result) -> str | None:
    """Return a sentence if all predictions on test are the same label.

    None if they are not, if that was not counted, as on dev, or if test has no other label.
    """
    counts = result.test.whole.confusion if result.is_tested else None
    if counts is None or sum(map(any, counts)) < 2:
        return None
    predicted = zip(result.labels, zip(*counts, strict=True), strict=True)
    given = [label for label, column in predicted if any(column)]
    if len(given) != 1:
        return None
    kind = "text" if result.is_text else "example"
    return (
        f"every {kind} of test got the label {given[0]!r}. If more steps do not help, python -m "
        "src.check looks for other causes"
    )
