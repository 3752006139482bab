"""Says so where what was trained is of little use: what the closing lines and the card add."""

from __future__ import annotations

from tartan.run_folder.result import Result

_POINTS = 2.0
"""Lead from which TF-IDF is remarked on [points]."""


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


def behind_tf_idf_remark(result: Result) -> str | None:
    """Return a sentence if TF-IDF is clearly ahead on test, or on dev of a run without test.

    None if it is not, or was not computed.
    """
    split = "test" if result.is_tested else "dev"
    own = (result.evaluated[split].whole.metrics or {}).get(result.metric)
    scores = [getattr(one, split) or {} for one in result.baselines if one.name == "tf_idf"]
    if own is None or not scores or result.metric not in scores[0]:
        return None
    lead = 100 * (scores[0][result.metric] - own)
    if lead < _POINTS:
        return None
    ahead = f"{lead:.1f} points of {result.metric} ahead on {split}"
    return f"TF-IDF with logistic regression is {ahead}. More steps or another rate may help"
