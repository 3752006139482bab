"""Names the options here that stand for those of lightning-hydra-template (docs/hydra.md)."""

from __future__ import annotations

TEMPLATE_NAMES = {
    "ckpt_path": "the same command resumes its run",
    "hparams_search": "use -m +search=NAME",
    "model": "use encoder=, classifier=, method= and weighting=",
    "data": "use task= and auxiliary=, data_dir=FOLDER, num_workers=, or "
    "method.stages.STAGE.batch_size=",
    "test": "use evaluate_test=false",
    "tags": "a run's folder is named by its experiment and options",
    "task_name": "a run's folder is named by its experiment and options",
    "optimized_metric": "task.metric on dev decides",
}
"""What stands for each option, by its name."""
