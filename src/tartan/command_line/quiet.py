"""Silences libraries' notices, so that this program's messages can be seen."""

from __future__ import annotations

import logging
import warnings

import datasets
import transformers

from tartan.errors import printable


def quiet_libraries() -> None:
    """Silence notices and short progress bars; warnings about the run itself and errors stay.

    Control characters in log messages are made visible, because they may come from files.
    """
    logging.setLogRecordFactory(_PrintableRecord)
    for name in ("lightning.pytorch", "lightning.fabric", "lightning_utilities", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # Lightning configures its logger when it is first imported, which may be later.
    logging.getLogger("lightning.pytorch.utilities.rank_zero").setLevel(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    warnings.filterwarnings("ignore", message=".*treespec.*")
    warnings.filterwarnings("ignore", message=".*smaller than the logging interval.*")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    # a run that goes on finds its own folders
    warnings.filterwarnings("ignore", message=".*exists and is not empty.*")


class _PrintableRecord(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802
        return printable(super().getMessage())
