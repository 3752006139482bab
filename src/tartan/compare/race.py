"""Runs a race: measures steps, trains the methods fold by fold, and the winner on all labels."""

import math
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tartan.compare.decision import Predictions, going_on, joined, winner
from tartan.compare.folds import (
    ALL,
    TEST,
    fold_of_rows,
    labelled_rows,
    load_task,
    task_options,
    write_folds,
)
from tartan.compare.outcome import Outcome
from tartan.compare.plan import LEARNS_FROM_DEV, Plan, Request, StepCost, plan_of, write_experiment
from tartan.data.labelled import write_trained_columns
from tartan.data.thresholds import best_thresholds, judged, judged_apart, write_thresholds
from tartan.errors import UserError
from tartan.evaluation.metrics import check_metric
from tartan.files import read_json, write_text_durably
from tartan.predict.predict import Settings, predict_file
from tartan.runs.command_line import duration, run_child
from tartan.runs.folder import RESULT
from tartan.runs.result import read_result
from tartan.settings import differing, quoted

PLAN = "compare.json"
"""File in the comparison's folder with its options, the cost of a step, and each stage's steps."""
FEW = 1000
"""Number of labelled examples up to which there are 5 folds, beyond it 3."""
_QUIET = "hydra/hydra_logging=none"


class Race:
    """The runs of a comparison, as children of this process; finished ones are not run again."""

    def __init__(self, request: Request) -> None:
        self._request, self._task = request, load_task(request.overrides)
        check_metric(self._task.metric, (), named=self._task.kind.named)
        self._rows = labelled_rows(self._task)
        self._tables = request.folder / "folds"

    def run(self) -> Outcome:
        """Race over the folds, train the winner on all labels, and evaluate it on a given test.

        Raises:
            UserError: an option or the data are invalid, or a run failed.
            SystemExit: a child was stopped by a signal.
        """
        request, task = self._request, self._task
        folds = request.folds or (5 if len(self._rows) <= FEW else 3)
        if folds < 2:
            raise UserError("folds: a race takes at least 2")
        fold_of = fold_of_rows(self._rows, folds, task.kind)
        write_folds(task, self._rows, fold_of, self._tables)
        if rare := int((fold_of < 0).sum()):
            print(f"{rare} examples are not judged: their labels have fewer than {folds} texts")
        plan = self._planned()
        for method in request.methods:
            write_experiment(method, request, plan.steps[method])
        print(_table(plan), flush=True)
        methods, parts, raw = list(request.methods), list[Predictions](), list[Predictions]()
        durations, tfidf = list[float](), list[float]()  # of the runs [s], scores of the folds
        for fold in range(folds):
            expected = fmean(durations or [plan.run_seconds])
            left = (plan.seconds or math.inf) - sum(durations)
            decided = len(methods) == 1 < len(request.methods)
            if parts and (decided or left < (len(methods) + 1) * expected):
                break
            most = duration(min(left, ((folds - fold) * len(methods) + 1) * expected))
            print(f"fold {fold + 1} of {folds}: {', '.join(methods)}; {most} at most", flush=True)
            raw.append(self._fold(fold, methods))
            parts.append(self._judged(raw[-1], fold_of == fold))
            results = [read_result(request.folder / "runs" / str(fold) / m) for m in methods]
            durations += [plan.start + result.seconds for result in results]
            if methods[0] not in LEARNS_FROM_DEV:  # then its dev is the held-out part
                tfidf += [b.dev[task.metric] for b in results[0].baselines if b.name == "tf_idf"]
            methods = going_on(joined(parts, methods), fold + 1, request.methods[0])
        chosen = winner(joined(parts, methods))
        print(f"{chosen} on all {len(self._rows):,} labelled examples", flush=True)
        best = request.folder / "best"
        held_out = self._tables / "0" / "held_out.jsonl"
        self._train([chosen], self._tables / ALL, held_out, [f"hydra.run.dir={quoted(best)}"])
        every, thresholds = joined(raw, [chosen]), None  # dev was trained on here
        if task.kind.lists_labels:
            thresholds = best_thresholds(every.probabilities[chosen], every.labels).tolist()
        write_thresholds(best / "classifier", task.labels, thresholds)
        test = self._predicted({chosen: best}, TEST) if len(task.test) else None
        if test is not None:
            scores = judged(test.probabilities[chosen], thresholds)
            test = replace(test, probabilities={chosen: scores})
        write_trained_columns(task.notes["columns"], best / "classifier")  # not those of the folds
        return Outcome(
            task, self._rows, fold_of.tolist(), request.methods, parts, methods, chosen, test, tfidf
        )

    def _planned(self) -> Plan:
        """Return the stored plan of this comparison, or measure what steps cost, and make one."""
        request = self._request
        path, asked = request.folder / PLAN, request.identity()
        if path.is_file():
            plan = read_json(path, Plan)
            if names := differing(plan.asked, asked):
                raise UserError(
                    f"{request.folder} holds a comparison with other {', '.join(names)}; name "
                    "another folder: folder=FOLDER"
                )
            return plan
        plan = plan_of(request, *self._measured())
        write_text_durably(path, plan.model_dump_json(indent=1) + "\n")
        return plan

    def _measured(self) -> tuple[dict[str, dict[str, StepCost]], float, float]:
        """Return what a step of each method's stages costs, and two times [s].

        They are the time to start a run, and that of all these measurements.
        """
        request, methods = self._request, self._request.methods
        for method in methods:
            write_experiment(method, request, None)
        print(f"measuring a few steps of {', '.join(methods)}", flush=True)
        # hidden, so that nothing takes what a kill leaves for runs
        folder = request.folder / ".pilot"
        shutil.rmtree(folder, ignore_errors=True)
        began, costs, training = time.monotonic(), {}, 0.0
        try:
            for method in methods:
                options = [
                    f"hydra.run.dir={quoted(folder / method)}", f"max_steps={request.pilot_steps}",
                    "trainer.enable_progress_bar=false", "logger=none",
                ]  # fmt: skip
                command = self._command([method], *self._fold_tables(0), options)
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    errors = [one for one in done.stderr.splitlines() if one.startswith("error: ")]
                    raise UserError((errors or ["the pilot failed"])[0].removeprefix("error: "))
                result = read_result(folder / method)
                training += result.seconds
                costs[method] = {
                    one.name: StepCost((one.flops or 0.0) / one.steps, one.seconds / one.steps)
                    for one in result.stages
                }
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        spent = time.monotonic() - began
        return costs, (spent - training) / len(methods), spent

    def _fold_tables(self, fold: int) -> tuple[Path, Path]:
        return self._tables / str(fold) / "train.jsonl", self._tables / str(fold) / "held_out.jsonl"

    def _fold(self, fold: int, methods: Sequence[str]) -> Predictions:
        """Train `methods` on a fold and return their predictions for its held-out examples."""
        folder = self._request.folder / "runs" / str(fold)
        places = [f"hydra.sweep.dir={quoted(folder)}", "hydra.sweep.subdir=${method.name}"]
        missing = [method for method in methods if not (folder / method / RESULT).is_file()]
        for learns in (False, True):  # two sweeps: their runs have other tables
            if some := [method for method in missing if (method in LEARNS_FROM_DEV) == learns]:
                self._train(some, *self._fold_tables(fold), ["-m", *places, f"seed={fold}", _QUIET])
        runs = {method: folder / method for method in methods}
        return self._predicted(runs, f"{fold}/held_out.jsonl")

    def _judged(self, raw: Predictions, held_out: NDArray[np.bool_]) -> Predictions:
        """Return predictions with scores as metrics compare them (see `judged_apart`)."""
        if not self._task.kind.lists_labels:
            return raw
        texts = [row["text"] for row, own in zip(self._rows, held_out, strict=True) if own]
        scores = {m: judged_apart(s, raw.labels, texts) for m, s in raw.probabilities.items()}
        return replace(raw, probabilities=scores)

    def _train(
        self, methods: Sequence[str], train: Path, held_out: Path, options: Sequence[str]
    ) -> None:
        code = run_child(self._command(methods, train, held_out, options))
        if code == 1:
            raise UserError("a run failed; see above")
        if code != 0:
            raise SystemExit(code)

    def _command(
        self, methods: Sequence[str], train: Path, held_out: Path, options: Sequence[str]
    ) -> list[str]:
        """Return the command that trains `methods` on a table."""
        # no URI: Hydra would look for a folder with `%20` in its name
        configs = f"file://{self._request.folder.absolute() / 'conf'}"
        learns = not set(methods).isdisjoint(LEARNS_FROM_DEV)
        return [
            sys.executable, "-m", "tartan", "run",
            f"hydra.searchpath=[{quoted(configs)}]",
            f"+experiment={','.join(f'compare_{method}' for method in methods)}",
            "task=files",
            *(o for o in self._request.overrides if not o.lstrip("+~").startswith("task")),
            *task_options(self._task, train, None if learns else held_out),
            *options,
        ]  # fmt: skip

    def _predicted(self, runs: Mapping[str, Path], table: str) -> Predictions:
        """Return what the run of each method predicts for a table of labelled examples."""
        names, kind, probabilities = self._task.labels, self._task.kind, {}
        for method, run in runs.items():
            output = run / f"predictions_{table.replace('/', '_')}"
            if not output.is_file():
                # a fold's run has fitted its temperature to the held-out examples
                source = str(self._tables / table)
                predict_file(Settings(str(run), source, str(output), calibrated=False))
            frame = pd.read_json(output, lines=True, dtype=False)
            columns = [kind.score_column.format(name) for name in names]
            # a label can lack in what is trained on, where all of its examples have the same text
            filled = frame.reindex(columns=columns, fill_value=0.0)
            probabilities[method] = filled.to_numpy("float32")
        index = {name: position for position, name in enumerate(names)}
        codes = np.array([kind.code(kind.label_of(label), index) for label in frame["label"]])
        codes = codes.astype("float32") if codes.dtype == "float64" else codes
        metric = kind.named[self._task.metric](**kind.sizes(len(names)))
        return Predictions(codes, probabilities, metric)


def _table(plan: Plan) -> str:
    """Return the table of what each stage costs."""
    rows = [
        (method, stage, f"{plan.costs[method][stage].flops / 1e9:,.3g}", f"{steps:,}")
        for method, stages in plan.steps.items()
        for stage, steps in stages.items()
    ]
    columns = ["method", "stage", "GFLOP a step", "steps"]
    takes = f"runs of equal cost, about {duration(plan.run_seconds)} each"
    return f"{takes}\n{pd.DataFrame(rows, columns=columns).to_string(index=False)}"
