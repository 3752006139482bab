"""Collects what `tartan check` finds out about a run: its data, its cost, and advice."""

import os
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

import datasets
import pandas as pd
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from tartan.check import texts
from tartan.check.advice import Recommendation, recommend
from tartan.check.trial import estimate_stages
from tartan.core.device import is_on_cuda
from tartan.data.objective_space import ComposedAuxiliary
from tartan.data.prepared import AuxiliaryExamples, Prepared
from tartan.data.text_task import TextTask
from tartan.encoders.text_encoder import TextEncoder
from tartan.methods.stage import Stage
from tartan.runs.prepare import enabled_stages, prepare
from tartan.vision.task import ImageTask


@dataclass(frozen=True)
class Findings:
    """The findings about a run.

    Attributes:
        title: method, task and encoder.
        tables: `labels` (number of examples, by split), `lengths`, `repeats`, `same` and `near`
            (see `texts`), which are empty for images, and `stages` (see `trial`).
    """

    title: str
    tables: dict[str, pd.DataFrame]
    memory_gib: float
    advice: Recommendation

    def as_json(self) -> dict[str, Any]:
        """Return all numbers as plain values."""
        entries = vars(self) | {"advice": asdict(self.advice)}
        for name, frame in entries.pop("tables").items():
            rows = frame.reset_index(names="name").astype(object)
            entries[name] = rows.where(rows.notna(), None).to_dict("records")
        return entries


def findings_of(config: DictConfig) -> Findings:
    """Read and count what a run would read, and train a few steps of each stage.

    Raises:
        UserError: an error that would end the run before its first step.
    """
    with tempfile.TemporaryDirectory() as folder:
        config.run.folder = folder
        OmegaConf.set_struct(config, False)
        for option in ("output", "model", "suggest"):  # of the command, none of a run's
            config.pop(option, None)
        stages = enabled_stages(config)
        prepared = prepare(config, stages)
        tables = _look_at_data(prepared)
        tables["stages"] = estimate_stages(config, stages, prepared)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if is_on_cuda(str(config.trainer.accelerator)):
            memory = torch.cuda.mem_get_info()[1]
        facts = _facts(config, prepared, stages, tables)
        share = tables["stages"]["GiB"].max() * 2**30 / memory
        return Findings(
            title=f"{config.method.name} on {prepared.end_task.name}, {prepared.encoder.name}",
            tables=tables,
            memory_gib=memory / 2**30,
            advice=recommend(facts | {"memory": share}),
        )


def _corpora(prepared: Prepared) -> dict[str, tuple[Any, AuxiliaryExamples]]:
    """Return the domain texts by the names of their options; objectives can share one."""
    found: dict[str, tuple[Any, AuxiliaryExamples]] = {}
    for name, (auxiliary, examples) in prepared.auxiliaries.items():
        if auxiliary.kind == "domain" and examples.texts is not None:
            source: Any = auxiliary
            if isinstance(auxiliary, ComposedAuxiliary):
                name, source = auxiliary.source.name, auxiliary.source.text
            found.setdefault(name, (source, examples))
    return found


def _look_at_data(prepared: Prepared) -> dict[str, pd.DataFrame]:
    """Return the tables of `Findings` about labels and texts."""
    task, encoder = prepared.end_task, prepared.encoder
    examples = texts.labelled_examples(prepared)
    splits = examples["split"].unique()
    codes = {split: getattr(prepared.splits, split)["label"][:] for split in splits}
    counts = {split: task.kind.counts(own, task.labels) for split, own in codes.items()}
    labels = pd.DataFrame(counts, index=[*task.labels])
    labels = labels.sort_values("train", ascending=False, kind="stable")
    if not isinstance(task, TextTask) or not isinstance(encoder, TextEncoder):
        of_texts = ("lengths", "repeats", "same", "near")
        return {"labels": labels} | dict.fromkeys(of_texts, pd.DataFrame())
    sources = {
        split: datasets.Dataset.from_dict({"text": part["text"].tolist()})
        for split, part in examples.groupby("split", sort=False)
    }
    limits = dict.fromkeys(sources, task.max_length)
    for name, (source, own) in _corpora(prepared).items():
        assert own.texts is not None
        sources[name] = own.texts
        limits[name] = getattr(source, "max_length", None) or task.max_length
    samples = {name: texts.sample_of(source, name) for name, source in sources.items()}
    samples = {name: sample for name, sample in samples.items() if sample}
    return {
        "labels": labels,
        "lengths": texts.lengths(samples, limits, encoder.tokenizer),
        "repeats": texts.repeats(examples),
        "same": texts.same_texts(examples),
        "near": texts.near_duplicates(examples),
    }


def _facts(
    config: DictConfig,
    prepared: Prepared,
    stages: dict[str, Stage],
    tables: dict[str, pd.DataFrame],
) -> dict[str, Any]:
    """Return the facts of `advice.yaml`, without the memory."""
    task, encoder, labels = prepared.end_task, prepared.encoder, tables["labels"]
    choices = HydraConfig.get().runtime.choices if HydraConfig.initialized() else {}
    heads = [stage for stage in stages.values() if not stage.meta_head.extra_examples]
    entries: dict[str, Any] = {
        "text": False,
        "masks": False,
        "parameters": sum(p.numel() for p in encoder.body.parameters()),
        "train": len(prepared.splits.train),
        "dev": len(prepared.splits.dev),
        "missing_in_dev": int((labels["dev"] == 0).sum()),
        "domain": sum(len(own.rows) for _, own in _corpora(prepared).values()),
        "unlabelled": len(getattr(task, "unlabelled", None) or ()),
        "method": str(config.method.name),
        "experiment": str(choices.get("experiment") or ""),
        "kinds": "+".join(
            sorted({auxiliary.kind for auxiliary, _ in prepared.auxiliaries.values()})
        ),
        "rarest_label": labels["train"].idxmin(),
        "rarest": int(labels["train"].min()),
    }
    if isinstance(task, ImageTask):
        entries["domain"] = len(task.others)
    if isinstance(encoder, TextEncoder):
        repeats, lengths = tables["repeats"], tables["lengths"]
        longest = lengths.sort_values("cut_%").iloc[-1]
        near = tables["near"]["split"].value_counts() / tables["repeats"]["texts"]
        entries |= {
            "text": True,
            "masks": encoder.tokenizer.mask_token_id is not None,
            "contradicted": repeats["other_label"]["train"] / entries["train"],
            "test_in_dev": int(repeats["in_dev"].fillna(0).iloc[-1]),
            "near": near.max() if len(tables["near"]) else 0.0,
            "cut": longest["cut_%"] / 100,
            "cut_source": longest.name,
            "enough": int(longest["enough"]),
            "unknown": lengths["unknown_%"].max() / 100,
        }
        entries |= {"longest_read": encoder.max_positions} if encoder.max_positions else {}
        if config.method.name == "meta_tartan" and heads:
            entries["meta_batch"] = heads[0].batch_size
    return entries
