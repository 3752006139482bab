"""Checks that a search file sets nothing that the command after the search would lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from tartan.errors import UserError
from tartan.run_folder.name import as_given, changes_no_training, option_of
from tartan.run_folder.run_next import OF_THE_SEARCH, RUN_NEXT
from tartan.settings import differing


def check_search_file(config: DictConfig) -> None:
    """Check that the file of `+search=NAME` only sets what is of the search itself.

    The command in `run_next.txt` is without `+search=NAME`, hence without the file's options.

    Args:
        config: the search's config, with `hydra`.

    Raises:
        UserError: the file sets an option of the runs; the message names it.
    """
    name = OmegaConf.select(config, "hydra.runtime.choices.search")
    if name is None or config.get("evaluate_test", True):  # which write no `run_next.txt`
        return
    hydra = config.hydra
    given = [*as_given(hydra.overrides.task), *as_given(hydra.overrides.hydra)]
    without = [override for override in given if option_of(override) != "search"]
    # an option that the file adds and the command changes: without the file Hydra refuses it, as it
    # will in the command after the search
    with suppress(HydraException):
        changed = differing(_options(config), _composed(hydra.job.config_name, without))
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise UserError(
                f"search={name} sets {changed[0]}{more}, which the command in {RUN_NEXT} would "
                "lack; take that out of the search file, and give it on the command line"
            )


def _composed(name: str, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the options of a sweep with these overrides.

    Raises:
        HydraException: an override is not possible.
    """
    loader = GlobalHydra.instance().config_loader()
    return _options(loader.load_configuration(name, list(overrides), RunMode.MULTIRUN))


def _options(config: DictConfig) -> dict[str, Any]:
    """Return the options of a run that the command after a search has to give, by dotted name."""
    content = OmegaConf.to_container(config, resolve=False)
    return {
        name: value
        for name, value in _leaves(content)
        if not changes_no_training(name) and name not in OF_THE_SEARCH
    }


def _leaves(node: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from _leaves(value, f"{above}.{name}" if above else str(name))
    else:
        yield above, node
