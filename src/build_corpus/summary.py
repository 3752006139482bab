"""What a corpus holds, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator

from src.data.corpus_manifest import MANIFEST, CorpusFolder


def summary_of(corpus: CorpusFolder) -> Iterator[str]:
    """Counts, and how to train on it."""
    counts = corpus.manifest.counts
    records, examples = counts["records"], counts["examples"]
    size = sum(shard.bytes for shard in corpus.manifest.shards)
    yield (
        f"records   {records['read']:,} read, {records['kept']:,} kept; left out: "
        f"{records['other_field']:,} of other fields, {records['no_text']:,} without text, "
        f"{records['bad']:,} bad"
    )
    yield (
        f"examples  {examples['made']:,} made, {examples['kept']:,} kept; left out: "
        f"{examples['repeated']:,} repeats, {examples['too_short']:,} too short"
    )
    yield (
        f"corpus    {counts['words']:,} words in {len(corpus.manifest.shards)} shards, "
        f"{size / 1e9:.3g} GB"
    )
    yield f"manifest  {corpus.path / MANIFEST}"
    yield f"train on it with auxiliary.dapt.path={corpus.path}"
