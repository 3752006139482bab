"""Says so where TF-IDF with logistic regression did better than what was trained."""

from __future__ import annotations

from src.run_folder.result import Result

_POINTS = 2.0
"""Lead from which TF-IDF is remarked on [points]."""


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
