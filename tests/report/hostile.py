"""A run that tries to be more than text, everywhere a run has text."""

from __future__ import annotations

from pathlib import Path

from tests.report.made_up_runs import config_of, result_of, write_run

SCRIPT = "<script>window.hacked = true</script><img src=x onerror='window.hacked = true'>"


def write_hostile(root: Path) -> None:
    """Finished runs of two settings, an unfinished and an unreadable one."""
    for name, method in (("one", "finetune"), ("two", "mt_tartan")):
        for seed in (0, 1):
            result = result_of(
                method,
                seed,
                0.5 + 0.1 * seed,
                task=f"t{SCRIPT}",
                encoder=f"</script>{SCRIPT}",
                labels=[f"l{SCRIPT}", "{{ 7 * 7 }}", "$x$"],
                auxiliaries=["dapt"] if name == "two" else [],
                flops=1e9,
            )
            config = config_of(result, {"evil": SCRIPT if name == "one" else "{{ 7 * 7 }}"})
            overrides = [f"+x={SCRIPT}", "'; rm -rf ~", "javascript:alert(1)"]
            folder = f"{name}{seed}<b onmouseover=alert(1)>&lt;"
            write_run(root / folder, result, config, overrides=overrides)
    write_run(root / "left<script>", None, config_of(result_of("tapt", 0, 0.5)))
    damaged = write_run(root / "bad<script>", result_of("finetune", 0, 0.5))
    (damaged / "result.json").write_text('{"schema": 2, "<script>": ')
