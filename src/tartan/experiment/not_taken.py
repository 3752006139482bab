"""Names options of Lightning's Trainer that a run does not take, and what to use instead."""

from __future__ import annotations

NOT_TAKEN = {
    "gradient_clip_val": (None, "method.stages.STAGE.optimisation.clip_norm"),
    "accumulate_grad_batches": (1, "micro_batch_size and method.stages.STAGE.batch_size"),
    "fast_dev_run": (False, "+debug=fast"),
    "overfit_batches": (0, "max_steps and smaller files"),
    "max_steps": (-1, "max_steps, or method.stages.STAGE.max_steps"),
    "max_epochs": (None, "method.stages.STAGE.max_epochs"),
    "limit_train_batches": (None, "max_steps"),
    # parts of a split, whose scores would stand as those of the whole
    "limit_val_batches": (None, "a smaller file: task.dev"),
    "limit_test_batches": (None, "evaluate_test=false, or a smaller file: task.test"),
    "val_check_interval": (None, "method.stages.STAGE.evaluate_every"),
    "check_val_every_n_epoch": (None, "method.stages.STAGE.evaluate_every"),
    "callbacks": (None, "callbacks=NAME, or +callbacks.NAME._target_=CLASS"),
    "logger": (None, "logger=NAME, or +logger.NAME._target_=CLASS"),
    "default_root_dir": (None, "hydra.run.dir"),
    "enable_checkpointing": (None, "checkpoint_minutes, and callbacks=model_checkpoint"),
    "plugins": (None, "trainer.precision and trainer.strategy"),
    "use_distributed_sampler": (None, "trainer=ddp, which shares out every batch"),
    "reload_dataloaders_every_n_epochs": (0, "seed, of which batches are functions"),
    "barebones": (False, "logger=none with trainer.enable_progress_bar=false"),
}
"""The options' defaults, and what to use instead, by name."""
