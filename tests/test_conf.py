"""Every file of `conf/` composes, experiments can be built, and the paper's have its settings."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tartan.core.weighting.fixed import Static
from tartan.core.weighting.meta import Meta
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.runs.prepare import auxiliaries_of, enabled_stages, module_class, named_auxiliaries
from tartan.settings import build
from tests.in_process import CONF, STAGES, config_of

pytestmark = pytest.mark.slow


def names(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


TASKS = ["acl_arc", "scierc", "chemprot", "hyperpartisan"]
ENDINGS = {
    "finetune": "finetune", "tapt": "tapt", "dapt": "dapt", "dapt_tapt": "dapt_tapt",
    "mt": "mt_tartan", "meta": "meta_tartan", "aang": "aang", "aang_static": "aang_static",
    "released_tapt": "released_tapt", "released_dapt": "released_dapt",
    "released_dapt_tapt": "released_dapt_tapt",
}  # fmt: skip
"""The method that each ending of an experiment's name stands for."""
OF_OTHER_TASKS = tuple(f"{task}_" for task in TASKS[1:])
EXPERIMENTS = [name for name in names("experiment") if not name.startswith(OF_OTHER_TASKS)]
NEEDED = {
    "encoder=huggingface": ["encoder.name=some/encoder"],
    "encoder=minilm_adapted": ["encoder.name=some/folder"],
    "task=files": ["task.train=a.jsonl", "task.dev=b.jsonl", "task.test=c.jsonl"],
    "encoder=wide_resnet": ["task=digits"],
    "weighting=static": ["weighting.values={end_task: 2, dapt: 1, tapt: 1}"],
}
"""What the user has to add to a choice that has no complete default."""


@cache
def stages_of(*options):
    return enabled_stages(config_of(options))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_is_made_of_what_can_be_built(experiment):
    config = config_of([f"+experiment={experiment}"])
    stages = enabled_stages(config)
    source = build(config.task, "task")
    assert callable(build(config.encoder, "encoder").load)
    auxiliaries = named_auxiliaries(config)
    for stage in stages.values():
        assert not module_class(stage).trains_auxiliaries or auxiliaries_of(stage, auxiliaries)
    weighting = build(config.weighting, "weighting", task_names=["end_task", *auxiliaries])
    mixing_meta = any(module_class(stage).has_meta_head for stage in stages.values())
    assert weighting.needs.meta_gradient == mixing_meta
    assert build(config.classifier, "classifier", classes=3).classes == 3
    if any(module_class(stage).trains_end_task for stage in stages.values()):
        metrics = {n: build(m, f"metrics.{n}", num_classes=3) for n, m in config.metrics.items()}
        EndTaskMetrics(metrics, source.metric, 3)
    task, _, ending = experiment.removeprefix("acl_arc").partition("_")
    if not task:
        assert (config.task.name, config.method.name) == ("acl_arc", ENDINGS[ending])
        assert (config.encoder.name == "FacebookAI/roberta-base") == ("released" not in ending)


def test_the_papers_other_tasks_have_the_same_experiments():
    for task in TASKS[1:]:
        texts = {}
        for name in (f"{task}_{ending}" for ending in ENDINGS):
            text = (CONF / "experiment" / f"{name}.yaml").read_text().replace(task, "acl_arc")
            texts[name.replace(task, "acl_arc")] = re.sub(r"#.*|allenai/.*", "", text)
        for name, text in texts.items():
            original = (CONF / "experiment" / f"{name}.yaml").read_text()
            assert text == re.sub(r"#.*|allenai/.*", "", original), (task, name)
        config = config_of([f"+experiment={task}_meta"])
        assert (config.task.name, config.task.max_length) == (task, 512)


@pytest.mark.parametrize("group", ["classifier", "encoder", "task"])
def test_every_choice_of_a_group_composes(group):
    for choice in (f"{group}={name}" for name in names(group)):
        assert group in config_of([choice, *NEEDED.get(choice, [])])


def test_every_auxiliary_task_and_every_stage_can_be_added():
    for name in names("auxiliary_task"):
        config = config_of([f"+auxiliary_task@auxiliary.extra={name}"])
        assert callable(build(config.auxiliary.extra, "auxiliary.extra").examples)
    for name in set(names("stage")) - {"base", "joint"}:
        options = ["method=finetune", f"+stage@method.stages.extra={name}"]
        # `adapt` ends by the perplexity of held-out text, which a run with an end task has not
        options += ["method.stages.extra.patience=null"] if name == "adapt" else []
        assert "extra" in stages_of(*options, "method.stages.extra.enabled=true")


def test_every_method_has_its_stages_with_the_rates_of_the_encoder():
    assert names("method") == sorted(STAGES)
    for method, stages in STAGES.items():
        task = ["task=held_out_text"] if method == "continued_pretraining" else []
        config = config_of([*task, f"method={method}", "encoder=roberta_base"])
        made = enabled_stages(config)
        assert list(made) == stages
        rates = set(config.encoder.lr.values())
        assert all(stage.optimisation.body_lr in rates for stage in made.values())


@pytest.mark.parametrize(("weighting", "kind"), [("static", Static), ("meta", Meta)])
def test_a_weighting_on_the_command_line_wins_over_the_methods_own(weighting, kind):
    choice = f"weighting={weighting}"
    for method in ("method=mt_tartan", "+experiment=acl_arc_meta"):
        for options in ([method, choice], [choice, method]):
            config = config_of([*options, *NEEDED.get(choice, [])])
            built = build(config.weighting, "weighting", task_names=["end_task", "dapt", "tapt"])
            assert type(built) is kind


def test_joint_trainings_settings_are_the_papers():
    for ending in ("mt", "meta"):
        stages = stages_of(f"+experiment=acl_arc_{ending}")
        assert list(stages) == ["joint", "last_finetune"]
        joint = stages["joint"]
        assert (joint.optimisation.body_lr, joint.optimisation.end_head_lr) == (1e-4, 1e-3)
        assert (joint.evaluate_every, joint.patience, joint.batch_size) == (30, 20, 128)
        assert (joint.max_epochs, joint.epochs_of, joint.auxiliaries) == (150, "largest", "all")
        last = stages["last_finetune"]
        assert (last.optimisation.body_lr, last.optimisation.end_head_lr) == (5e-6, 5e-6)
        assert (last.optimisation.decay, last.optimisation.warmup) == ("constant", 0)
        assert (last.batch_size, last.max_epochs, last.patience) == (128, 10, 3)
        assert list(stages_of(f"method={ENDINGS[ending]}")) == ["joint"]  # until asked for
    head = stages_of("+experiment=acl_arc_meta")["joint"].meta_head
    assert (head.kind, head.fresh, head.steps) == ("separate", True, 10)
    assert (head.lr, head.weight_decay) == (1e-3, 0.1)
    assert head.examples in (16, 32)


def test_the_chains_settings_are_those_of_gururangan_and_others():
    for ending in ("finetune", "tapt", "dapt", "dapt_tapt"):
        config = config_of([f"+experiment=acl_arc_{ending}"])
        for name, stage in enabled_stages(config).items():
            settings = stage.optimisation
            assert (settings.beta1, settings.beta2, settings.eps) == (0.9, 0.98, 1e-6)
            assert (settings.warmup, settings.clip_norm) == (0.06, 1.0)
            if name == "finetune":
                assert (settings.body_lr, settings.end_head_lr) == (2e-5, 2e-5)
                assert (stage.batch_size, stage.max_epochs, stage.patience) == (16, 10, 3)
                assert stage.evaluate_every is None  # once an epoch
            else:
                assert (stage.max_epochs, stage.batch_size, settings.body_lr) == (100, 256, 1e-4)
                assert stage.auxiliaries == {"tapt": "task", "dapt": "domain"}[name]
        if "dapt" in ending:  # domain text is ten times the task, as in tables 2 and 4
            assert config.auxiliary.size == 10
    objective = config.auxiliary.tapt.objective
    assert (objective.probability, objective.masked, objective.random) == (0.15, 0.8, 0.1)
    full = stages_of("+experiment=acl_arc_dapt", "stage@method.stages.dapt=dapt_full")["dapt"]
    assert (full.max_steps, full.max_epochs, full.batch_size) == (12500, None, 2048)
    assert full.optimisation.body_lr == 5e-4
