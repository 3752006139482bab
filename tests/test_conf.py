"""Every file of `conf/` composes, and every experiment is made of what can be built."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir

from tartan.core.weighting.fixed import Static, Uniform
from tartan.core.weighting.meta import Meta
from tartan.data.end_task import EndTaskSource
from tartan.data.held_out_text import HeldOutText
from tartan.data.objective_space import ComposedAuxiliary
from tartan.data.text_auxiliary import TextAuxiliary
from tartan.errors import UserError
from tartan.evaluation.metrics import EndTaskMetrics
from tartan.methods.fit import build_trainer
from tartan.methods.stage import Stage
from tartan.runs.prepare import (
    auxiliaries_of,
    enabled_stages,
    module_class,
    named_auxiliaries,
)
from tartan.settings import build
from tartan.vision.task import OtherClasses
from tests.in_process import CONF, STAGES, config_of

pytestmark = pytest.mark.slow

EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
TASKS = ["acl_arc", "scierc", "chemprot", "hyperpartisan"]
IMAGES = ["digits", "cifar100"]
METHODS = {
    "finetune": "finetune",
    "tapt": "tapt",
    "dapt": "dapt",
    "dapt_tapt": "dapt_tapt",
    "mt": "mt_tartan",
    "meta": "meta_tartan",
    "aang": "aang",
    "aang_static": "aang_static",
}
"""The method that each ending of an experiment's name stands for."""

RELEASED = {
    "acl_arc": ("cs_roberta_base", "citation_intent_1688"),
    "scierc": ("cs_roberta_base", "sciie_3219"),
    "chemprot": ("biomed_roberta_base", "chemprot_4169"),
    "hyperpartisan": ("news_roberta_base", "hyperpartisan_news_515"),
}
"""The DAPT checkpoint of each task's domain, and how TAPT's names end, as their authors list."""
PRETRAINING = {"pretrain", "pretrain_minilm_biomed", "pretrain_minilm_cs"}
"""Experiments without an end task."""
OWN = {
    "custom", "custom_mt", "custom_dapt", "custom_tapt", "custom_finetune", "custom_aang",
    "custom_aang_static", "custom_dapt_tapt",
}  # fmt: skip
"""Experiments on the user's own files."""
WEIGHTINGS = {"uniform": Uniform, "static": Static, "meta": Meta}
NEEDED = {
    "encoder=huggingface": ["encoder.name=some/encoder"],
    "encoder=minilm_adapted": ["encoder.name=some/folder"],
    "task=files": ["task.train=a.jsonl", "task.dev=b.jsonl", "task.test=c.jsonl"],
    "encoder=wide_resnet": ["task=digits"],
    "weighting=static": ["weighting.values={end_task: 2, dapt: 1, tapt: 1}"],
}
"""What the user has to add to a choice that has no complete default."""


def names(group):
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def stages_of(*options) -> dict[str, Stage]:
    return enabled_stages(config_of(options))


def test_the_experiments_are_every_method_on_every_task_of_the_paper_and_the_quickstart():
    papers = {f"{task}_{ending}" for task in TASKS for ending in METHODS}
    images = {f"{task}_{ending}" for task in IMAGES for ending in ("pretrain", "mt", "meta")}
    docstrings = {f"docstrings_{ending}" for ending in METHODS if ending != "dapt_tapt"}
    released = {
        f"{task}_released_{name}" for task in TASKS for name in ("tapt", "dapt", "dapt_tapt")
    }
    assert set(EXPERIMENTS) == papers | released | images | docstrings | OWN | PRETRAINING | {
        "quickstart",
        "quickstart_aang",
        "digits_finetune",
    }


@pytest.mark.parametrize("experiment", sorted(PRETRAINING))
def test_an_experiment_without_an_end_task_is_made_of_what_can_be_built(experiment):
    config = config_of([f"+experiment={experiment}", "data_dir=somewhere"])
    stages = enabled_stages(config)
    assert not any(module_class(stage).trains_end_task for stage in stages.values())
    assert stages["adapt"].patience is not None
    assert isinstance(build(config.task, "task"), HeldOutText)
    assert isinstance(build(config.auxiliary.dapt, "auxiliary.dapt"), TextAuxiliary)
    assert callable(build(config.encoder, "encoder").load)
    assert config.auxiliary.size == "all"


@pytest.mark.parametrize("task", TASKS)
def test_released_checkpoints_are_those_of_the_task_and_stand_beside_roberta(task):
    dapt, tapt = RELEASED[task]
    domain = dapt.split("_")[0]
    names = {
        "dapt": f"allenai/{dapt}",
        "tapt": f"allenai/dsp_roberta_base_tapt_{tapt}",
        "dapt_tapt": f"allenai/dsp_roberta_base_dapt_{domain}_tapt_{tapt}",
    }
    for method, name in names.items():
        config = config_of([f"+experiment={task}_released_{method}"])
        assert (config.task.name, config.encoder.name) == (task, name)
        assert config.encoder.reported_as == config_of(["encoder=roberta_base"]).encoder.name
        assert config.method.name == f"released_{method}"
        assert enabled_stages(config) == stages_of(f"+experiment={task}_finetune")


@pytest.mark.parametrize("experiment", [one for one in EXPERIMENTS if one not in PRETRAINING])
def test_an_experiment_is_made_of_what_can_be_built(experiment):
    config = config_of([f"+experiment={experiment}"])
    stages = enabled_stages(config)
    source: EndTaskSource = build(config.task, "task")
    assert source.metric in config.metrics
    assert callable(build(config.encoder, "encoder").load)
    auxiliaries = named_auxiliaries(config)
    kind = OtherClasses if experiment.startswith(tuple(IMAGES)) else TextAuxiliary
    kind = ComposedAuxiliary if "aang" in experiment else kind
    assert all(isinstance(auxiliary, kind) for auxiliary in auxiliaries.values())
    for stage in stages.values():
        assert not module_class(stage).trains_auxiliaries or auxiliaries_of(stage, auxiliaries)
    weighting = build(config.weighting, "weighting", task_names=["end_task", *auxiliaries])
    mixing_meta = any(module_class(stage).has_meta_head for stage in stages.values())
    assert weighting.needs.meta_gradient == mixing_meta
    assert build(config.classifier, "classifier", classes=3).classes == 3
    metrics = {n: build(m, f"metrics.{n}", num_classes=3) for n, m in config.metrics.items()}
    EndTaskMetrics(metrics, source.metric, 3)
    assert build_trainer(config, [], max_steps=1, logger=False).max_steps == 1


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("ending", METHODS)
def test_an_experiments_name_says_task_and_method(task, ending):
    config = config_of([f"+experiment={task}_{ending}"])
    assert (config.task.name, config.method.name) == (task, METHODS[ending])
    assert config.encoder.name == "FacebookAI/roberta-base"


@pytest.mark.parametrize(
    "ending", ["finetune", "tapt", "dapt", "mt", "meta", "aang", "aang_static"]
)
def test_methods_on_docstrings_see_as_many_labelled_examples(ending):
    config = config_of([f"+experiment=docstrings_{ending}"])
    assert (config.task.name, config.method.name) == ("docstrings", METHODS[ending])
    for stage in enabled_stages(config).values():
        assert (stage.batch_size, stage.max_steps, stage.patience) == (32, 36, None)


def test_the_quickstart_needs_no_network():
    config = config_of(["+experiment=quickstart"])
    assert config.task.name == "docstrings"
    assert config.encoder._target_ == "tartan.encoders.pretrained.PackagedEncoder"
    assert config.method.name == "meta_tartan"


GROUPS = [
    "auxiliary",
    "callbacks",
    "classifier",
    "encoder",
    "logger",
    "method",
    "task",
    "trainer",
    "weighting",
]


@pytest.mark.parametrize("choice", [f"{group}={name}" for group in GROUPS for name in names(group)])
def test_every_choice_of_a_group_composes(choice):
    config = config_of([choice, *NEEDED.get(choice, [])])
    assert choice.split("=")[0] in config


@pytest.mark.parametrize("name", names("auxiliary_task"))
def test_every_kind_of_auxiliary_task_composes_under_a_name_of_its_own(name):
    config = config_of([f"+auxiliary_task@auxiliary.extra={name}"])
    assert isinstance(
        build(config.auxiliary.extra, "auxiliary.extra"), (TextAuxiliary, OtherClasses)
    )


@pytest.mark.parametrize("name", [name for name in names("stage") if name not in ("base", "joint")])
def test_every_stage_composes_as_one_more_stage_of_a_method(name):
    options = ["method=finetune", f"+stage@method.stages.extra={name}"]
    # `adapt` ends by the perplexity of held-out text, which a run with an end task has not
    options += ["method.stages.extra.patience=null"] if name == "adapt" else []
    assert "extra" in stages_of(*options, "method.stages.extra.enabled=true")


@pytest.mark.parametrize("method", names("method"))
@pytest.mark.parametrize("encoder", names("encoder"))
def test_every_encoder_goes_with_every_method(encoder, method):
    choice = f"encoder={encoder}"
    task = ["task=held_out_text"] if method == "continued_pretraining" else []
    config = config_of([choice, *NEEDED.get(choice, []), *task, f"method={method}"])
    if (encoder, method) == ("wide_resnet", "continued_pretraining"):
        with pytest.raises(UserError, match=r"encoder\.mean"):  # there are no images
            enabled_stages(config)
        return
    stages = enabled_stages(config)
    assert list(stages) == STAGES[method]
    rates = set(config.encoder.lr.values())
    assert all(stage.optimisation.body_lr in rates for stage in stages.values())


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(
    "method", ["method=mt_tartan", "method=meta_tartan", "+experiment=acl_arc_meta"]
)
def test_a_weighting_on_the_command_line_wins_over_the_methods_own(method, weighting):
    choice = f"weighting={weighting}"
    for options in ([method, choice], [choice, method]):
        config = config_of([*options, *NEEDED.get(choice, [])])
        built = build(config.weighting, "weighting", task_names=["end_task", "dapt", "tapt"])
        assert type(built) is WEIGHTINGS[weighting]


def test_a_weighting_leaves_no_options_of_the_one_it_replaces():
    assert set(config_of(["method=meta_tartan", "weighting=uniform"]).weighting) == {"_target_"}


@pytest.mark.parametrize("method", names("method"))
def test_a_method_brings_its_own_weighting(method):
    config = config_of([f"method={method}"])
    meta = config.weighting._target_ == "tartan.core.weighting.meta.Meta"
    assert meta == (method in ("meta_tartan", "tapt_meta_tartan"))


def test_another_method_than_the_experiments_brings_its_own_weighting_too():
    config = config_of(["+experiment=acl_arc_meta", "method=mt_tartan"])
    assert config.weighting._target_ == "tartan.core.weighting.fixed.Uniform"


@pytest.mark.parametrize("ending", METHODS)
def test_the_optimisers_settings_are_the_papers(ending):
    for name, stage in stages_of(f"+experiment=acl_arc_{ending}").items():
        settings = stage.optimisation
        assert (settings.beta1, settings.beta2) == (0.9, 0.98)
        warmup = 0.0 if name == "last_finetune" else 0.06  # whose rate is constant
        assert (settings.eps, settings.warmup, settings.clip_norm) == (1e-6, warmup, 1.0)


@pytest.mark.parametrize("ending", ["mt", "meta"])
def test_joint_trainings_settings_are_the_papers(ending):
    joint = stages_of(f"+experiment=acl_arc_{ending}")["joint"]
    assert (joint.optimisation.body_lr, joint.optimisation.end_head_lr) == (1e-4, 1e-3)
    assert (joint.evaluate_every, joint.patience) == (30, 20)
    assert joint.batch_size == 128
    assert joint.auxiliaries == "all"


def test_the_meta_heads_settings_are_the_papers():
    head = stages_of("+experiment=acl_arc_meta")["joint"].meta_head
    assert (head.kind, head.fresh) == ("separate", True)
    assert (head.steps, head.lr, head.weight_decay) == (10, 1e-3, 0.1)
    assert head.examples in (16, 32)


@pytest.mark.parametrize("ending", ["finetune", "tapt", "dapt", "dapt_tapt"])
def test_finetunings_settings_are_those_of_gururangan_and_others(ending):
    stage = stages_of(f"+experiment=acl_arc_{ending}")["finetune"]
    assert (stage.optimisation.body_lr, stage.optimisation.end_head_lr) == (2e-5, 2e-5)
    assert (stage.batch_size, stage.max_epochs, stage.patience) == (16, 10, 3)
    assert stage.evaluate_every is None  # once an epoch


@pytest.mark.parametrize(("ending", "text"), [("tapt", "task"), ("dapt_tapt", "task")])
def test_tapts_settings_are_those_of_gururangan_and_others(ending, text):
    stage = stages_of(f"+experiment=acl_arc_{ending}")["tapt"]
    assert (stage.max_epochs, stage.batch_size, stage.optimisation.body_lr) == (100, 256, 1e-4)
    assert stage.auxiliaries == text


def test_dapt_on_a_few_texts_is_tapt_on_other_text():
    stages = stages_of("+experiment=acl_arc_dapt_tapt")
    stages["dapt"].auxiliaries = stages["tapt"].auxiliaries
    assert stages["dapt"] == stages["tapt"]


def test_dapt_on_a_whole_corpus_has_its_own_schedule():
    options = ["+experiment=acl_arc_dapt", "stage@method.stages.dapt=dapt_full"]
    stage = stages_of(*options)["dapt"]
    assert (stage.max_steps, stage.batch_size, stage.optimisation.body_lr) == (12500, 2048, 5e-4)
    assert stage.max_epochs is None


@pytest.mark.parametrize("method", ["mt_tartan", "meta_tartan"])
def test_the_last_finetuning_is_off_until_asked_for(method):
    option = "method.stages.last_finetune.enabled=true"
    assert list(stages_of(f"method={method}")) == ["joint"]
    stages = stages_of(f"method={method}", option)
    assert list(stages) == ["joint", "last_finetune"]
    last = stages["last_finetune"]
    assert (last.optimisation.body_lr, last.optimisation.end_head_lr) == (5e-6, 5e-6)
    assert (last.optimisation.decay, last.optimisation.warmup) == ("constant", 0)
    assert (last.batch_size, last.max_epochs, last.patience) == (128, 10, 3)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("ending", ["mt", "meta"])
def test_the_papers_joint_experiments_are_a_published_column_with_its_authors_recipe(task, ending):
    config = config_of([f"+experiment={task}_{ending}"])
    stages = enabled_stages(config)
    assert list(stages) == ["joint", "last_finetune"]
    assert (stages["joint"].max_epochs, stages["joint"].epochs_of) == (150, "largest")
    assert list(named_auxiliaries(config)) == ["tapt"]


@pytest.mark.parametrize("ending", ["dapt", "dapt_tapt", "mt", "meta"])
def test_domain_text_is_ten_times_the_task_as_in_tables_2_and_4(ending):
    assert config_of([f"+experiment=acl_arc_{ending}"]).auxiliary.size == 10


def test_images_settings_are_the_authors():
    config = config_of(["+experiment=cifar100_meta"])
    joint = enabled_stages(config)["joint"]
    assert (config.task.train_per_class * 5, config.task.dev_per_class * 5) == (200, 65)
    assert (joint.batch_size, joint.max_epochs, joint.patience) == (64, 30, None)
    assert (joint.meta_batch_size, joint.meta_head.examples, joint.meta_head.lr) == (16, 16, 0.03)
    optimisation = joint.optimisation
    assert (optimisation.body_lr, optimisation.end_head_lr) == (3e-4, 3e-4)
    assert (optimisation.decay, optimisation.warmup, optimisation.clip_norm) == (
        "constant",
        0,
        None,
    )
    assert optimisation.weight_decay == 0
    assert config.encoder.dropout == 0.1
    assert (config.classifier.shift, config.classifier.flip) == (0, False)
    assert (config.auxiliary.other_classes.shift, config.auxiliary.other_classes.flip) == (0, False)


def test_images_pretraining_sees_as_many_images_as_joint_training():
    joint = stages_of("+experiment=cifar100_mt")["joint"]
    stages = stages_of("+experiment=cifar100_pretrain")
    steps = joint.steps(200)
    assert (stages["pretrain"].max_steps, stages["finetune"].steps(200)) == (steps, steps)
    assert {stage.batch_size for stage in stages.values()} == {joint.batch_size}


@pytest.mark.parametrize("task", TASKS)
def test_the_papers_tasks_are_read_to_512_tokens(task):
    assert config_of([f"task={task}"]).task.max_length == 512


def test_masking_is_the_papers():
    objective = config_of(["+experiment=acl_arc_tapt"]).auxiliary.tapt.objective
    assert (objective.probability, objective.masked, objective.random) == (0.15, 0.8, 0.1)


@pytest.mark.parametrize("logging", ["default", "disabled", "none", "stdout"])
def test_whatever_the_logging_its_handlers_have_a_class(logging):
    given = [f"hydra/job_logging={logging}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=given, return_hydra_config=True)
    assert all("class" in handler for handler in config.hydra.job_logging.handlers.values())
