"""Which runs belong together, and which may be compared."""

from __future__ import annotations

import os

import pytest

from tartan.report.labels import METHODS, usual_module
from tartan.report.reading.grouping import benchmarks_of, differing_options
from tests.in_process import STAGES
from tests.in_process import config_of as config_of_command
from tests.report.made_up_runs import (
    altered,
    bench_of,
    config_of,
    read_all,
    result_of,
    write_drawn,
    write_run,
    write_setting,
)


def labels(bench):
    return [setting.label for setting in bench.settings]


def test_seeds_of_one_config_are_one_setting(tmp_path):
    write_setting(tmp_path, "a", "finetune", [0.5, 0.6, 0.7], options={"encoder.name": "x"})
    (setting,) = bench_of(tmp_path).settings
    assert setting.scores("whole") == {0: 0.5, 1: 0.6, 2: 0.7}
    assert setting.label == "Fine-tuning"


def test_a_fine_tuning_baseline_beside_a_run_is_no_difference(tmp_path):
    module = {"fine_tuning_baseline.module": "tartan.methods.fine_tuning.FineTuning"}
    for seed, options in ((0, {"fine_tuning_baseline": None}), (1, module)):
        result = result_of("finetune", seed, 0.5)
        write_run(tmp_path / str(seed), result, config_of(result, options))
    (setting,) = bench_of(tmp_path).settings
    assert (setting.label, len(setting.runs)) == ("Fine-tuning", 2)


def test_an_option_that_follows_the_seed_is_no_difference(tmp_path):
    for seed in (0, 1):
        result = result_of("finetune", seed, 0.5)
        write_run(tmp_path / str(seed), result, config_of(result, {"encoder.seed": seed}))
    assert len(bench_of(tmp_path).settings) == 1


def write_encoder_seeds(root, name, seeds, overrides=()):
    """Runs of seeds from 0 with these seeds of the encoder."""
    for seed, encoder_seed in enumerate(seeds):
        result = result_of("finetune", seed, 0.5)
        config = config_of(result, {"encoder.seed": encoder_seed})
        write_run(root / f"{name}{seed}", result, config, overrides=overrides)


def test_one_seed_of_the_encoder_for_all_runs_is_one_setting(tmp_path):
    write_encoder_seeds(tmp_path, "a", [0, 0, 0])
    (setting,) = bench_of(tmp_path).settings
    assert sorted(setting.scores("whole")) == [0, 1, 2]
    assert setting.options["encoder.seed"] == 0


def test_a_given_seed_of_the_encoder_leaves_the_runs_that_follow_theirs_whole(tmp_path):
    write_encoder_seeds(tmp_path, "given", [0, 0, 0], ["encoder.seed=0"])
    write_encoder_seeds(tmp_path, "own", [0, 1, 2], ["encoder=wide_resnet"])
    settings = bench_of(tmp_path).settings
    found = {s.options.get("encoder.seed"): [run.name for run in s.runs] for s in settings}
    assert found == {0: ["given0", "given1", "given2"], None: ["own0", "own1", "own2"]}
    assert not any(setting.repeated for setting in settings)
    assert differing_options(settings) == {"encoder.seed": [0, None]}


def test_data_that_each_seed_draws_are_compared_as_one(tmp_path):
    for method, auxiliaries in (("finetune", []), ("tapt", ["tapt"])):
        for seed in range(5):
            result = result_of(method, seed, 0.5, auxiliaries=auxiliaries)
            write_drawn(tmp_path / f"{method}{seed}", result, seed)
    bench = bench_of(tmp_path)
    assert bench.draws_data
    assert [len(setting.runs) for setting in bench.settings] == [5, 5]
    assert labels(bench) == ["Fine-tuning", "TAPT"]
    assert "task.split_seed" not in differing_options(bench.settings)


@pytest.mark.parametrize("given", ["task.split_seed=${seed}", "++task.split_seed='${seed}'"])
def test_drawn_data_keep_their_seed_0_beside_runs_of_the_default_choice(tmp_path, given):
    for method, auxiliaries in (("finetune", []), ("tapt", ["tapt"])):
        for seed in range(5):
            result = result_of(method, seed, 0.5, auxiliaries=auxiliaries)
            write_drawn(tmp_path / f"{method}{seed}", result, seed, overrides=[given])
    for seed in range(2):
        write_drawn(tmp_path / f"fixed{seed}", result_of("finetune", seed, 0.5), 0)
    found = {
        bench.draws_data: [sorted(setting.scores("whole")) for setting in bench.settings]
        for bench in benchmarks_of(read_all(tmp_path))
    }
    assert found == {True: [[0, 1, 2, 3, 4]] * 2, False: [[0, 1]]}


def test_one_choice_of_data_for_all_seeds_stays_one(tmp_path):
    """Seed 0 with `task.split_seed` of 0, the default, draws nothing of its own."""
    for seed in range(3):
        write_drawn(tmp_path / f"a{seed}", result_of("finetune", seed, 0.5), 0)
    write_drawn(tmp_path / "b", result_of("mt_tartan", 0, 0.5), 0)
    bench = bench_of(tmp_path)
    assert not bench.draws_data
    assert [len(setting.runs) for setting in bench.settings] == [3, 1]


def test_every_choice_with_every_seed_is_a_comparison_a_choice(tmp_path):
    for seed in range(2):
        for split in range(2):
            result = result_of("finetune", seed, 0.5)
            write_drawn(tmp_path / f"{seed}-{split}", result, split)
    assert [len(bench.runs) for bench in benchmarks_of(read_all(tmp_path))] == [2, 2]


def test_drawn_data_of_another_file_are_others(tmp_path):
    for seed in range(2):
        result = result_of("finetune", seed, 0.5)
        write_drawn(tmp_path / f"a{seed}", result, seed)
        other = altered(result, "fingerprints.test", "c" * 64)
        write_drawn(tmp_path / f"b{seed}", other, seed)
    assert [len(bench.runs) for bench in benchmarks_of(read_all(tmp_path))] == [2, 2]


def test_held_out_and_clean_splits_can_be_drawn_too(tmp_path):
    for seed in range(2):
        for name, said in (
            ("held", f"HeldOut(share=0.2, seed={seed}, split='dev') of {'a' * 64}"),
            ("clean", f"dev, clean, seed {seed}, of {'a' * 64}"),
        ):
            result = result_of("finetune", seed, 0.5, task=name)
            result = altered(result, "fingerprints.dev", said)
            options = {"task.split_seed": seed}
            write_run(tmp_path / f"{name}{seed}", result, config_of(result, options))
    benches = benchmarks_of(read_all(tmp_path))
    assert [(bench.task, len(bench.settings)) for bench in benches] == [("clean", 1), ("held", 1)]


def test_a_seed_of_splits_that_chose_nothing_is_no_difference(tmp_path):
    for seed in range(2):
        result = result_of("finetune", seed, 0.5)
        write_run(tmp_path / str(seed), result, config_of(result, {"task.split_seed": seed}))
    assert len(bench_of(tmp_path).settings) == 1


@pytest.mark.parametrize(
    ("fingerprints", "settings"),
    [
        (("corpus:300:0", "corpus:301:0"), 1),  # another number of texts for another train
        (("corpus:300:0", "other:300:0"), 2),
        (("corpus:300:0", "corpus:300:1"), 2),
    ],
)
def test_the_corpus_of_drawn_data_has_to_be_the_same(fingerprints, settings, tmp_path):
    for seed, fingerprint in enumerate(fingerprints):
        result = result_of("dapt", seed, 0.5, auxiliaries=["dapt"])
        result = altered(result, "auxiliaries.dapt.fingerprint", fingerprint)
        result = altered(result, "auxiliaries.dapt.examples", 300 + seed)
        write_drawn(tmp_path / str(seed), result, seed)
    assert len(bench_of(tmp_path).settings) == settings


def test_decontaminated_text_of_drawn_data_goes_by_its_file(tmp_path):
    for seed in range(2):
        for source in ("/here/a.txt", "/here/b.txt"):
            result = result_of("dapt", seed, 0.5, auxiliaries=["dapt"])
            own = result["auxiliaries"]["dapt"]
            own |= {"source": source, "fingerprint": f"{seed}{source}:decontaminated:9:0"}
            own |= {"examples": 300 + seed, "decontaminated": 4 + seed}
            write_drawn(tmp_path / f"{seed}{source[-5]}", result, seed)
    assert [len(setting.runs) for setting in bench_of(tmp_path).settings] == [2, 2]


def test_another_option_is_another_setting_and_its_label_says_which(tmp_path):
    for rate in (0.1, 0.2):
        options = {"method.stages.finetune.lr": rate}
        write_setting(tmp_path, f"lr{rate}", "finetune", [0.5, 0.6], options=options)
    bench = bench_of(tmp_path)
    assert labels(bench) == ["Fine-tuning [finetune.lr=0.1]", "Fine-tuning [finetune.lr=0.2]"]
    assert differing_options(bench.settings) == {"method.stages.finetune.lr": [0.1, 0.2]}


def test_where_files_lie_is_no_difference(tmp_path):
    for seed, place in enumerate(("/here", "/there")):
        result = result_of("mt_tartan", seed, 0.5, auxiliaries=["dapt"])
        result = altered(result, "auxiliaries.dapt.source", f"{place}/corpus.txt")
        write_run(tmp_path / str(seed), result, config_of(result, {"data_dir": place}))
    assert len(bench_of(tmp_path).settings) == 1


@pytest.mark.parametrize(
    ("newest", "counts"),
    [("seed=0", "seed=0"), ("seed=0-2", "seed=0-2"), ("seed=0-10", "seed=0-10"),
     (None, "seed=0-10")],
)  # fmt: skip
def test_of_the_same_run_again_the_newest_counts(tmp_path, newest, counts):
    scores = {"seed=0": 0.5, "seed=0-2": 0.6, "seed=0-10": 0.7, "seed=1": 0.8}
    for name, score in scores.items():
        folder = write_run(tmp_path / name, result_of("finetune", int(name[5]), score))
        os.utime(folder / "result.json", (1000, 1001 if name == newest else 1000))
    (setting,) = bench_of(tmp_path).settings
    assert setting.scores("whole") == {0: scores[counts], 1: 0.8}
    assert [run.name for run in setting.runs] == [counts, "seed=1"]
    assert {run.name for run in setting.repeated} == scores.keys() - {counts, "seed=1"}


def test_methods_come_in_the_papers_order_and_sizes_by_size(tmp_path):
    write_setting(tmp_path, "meta", "meta_tartan", [0.5], auxiliaries=["dapt", "tapt"])
    for size in (10, 2, "all"):
        write_setting(tmp_path, f"dapt{size}", "dapt", [0.5], auxiliaries=["dapt"], size=size)
    write_setting(tmp_path, "tapt", "tapt", [0.5], auxiliaries=["tapt"])
    write_setting(tmp_path, "own", "my_method", [0.5])
    write_setting(tmp_path, "finetune", "finetune", [0.5])
    assert labels(bench_of(tmp_path)) == [
        "Fine-tuning", "TAPT", "DAPT 2x", "DAPT 10x", "DAPT all",
        "META-TARTAN, DAPT 10x + TAPT", "my_method",
    ]  # fmt: skip


def test_another_weighting_is_named(tmp_path):
    result = altered(result_of("mt_tartan", 0, 0.5, auxiliaries=["dapt"]), "weighting", "upgrad")
    write_run(tmp_path / "run", result)
    assert labels(bench_of(tmp_path)) == ["MT-TARTAN (upgrad), DAPT 10x"]


@pytest.mark.parametrize(
    ("path", "value", "label"),
    [
        ("task", "other", "other, tiny"),
        ("encoder", "roberta", "toy, roberta"),
        ("fingerprints", {"test": "c"}, "toy, tiny, data "),
        ("labels", ["A", "B", "D"], "toy, tiny, data "),
    ],
)
def test_only_like_is_compared_with_like(tmp_path, path, value, label):
    result = result_of("finetune", 0, 0.5)
    write_run(tmp_path / "a", result)
    write_run(tmp_path / "b", altered(result, path, value))
    benches = benchmarks_of(read_all(tmp_path))
    assert len(benches) == 2
    assert len({bench.key for bench in benches}) == 2
    assert any(bench.label.startswith(label) for bench in benches)


def test_keys_are_fit_for_files_and_anchors(tmp_path):
    for name, task in (("a", "../<b>&"), ("b", "../<b>#"), ("c", "$")):
        write_run(tmp_path / name, result_of("finetune", 0, 0.5, task=task, encoder="%"))
    keys = [bench.key for bench in benchmarks_of(read_all(tmp_path))]
    assert len(set(keys)) == 3
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_") for key in keys)


def write_seeds(root, method, options, **more):
    """A run for each of several sets of options, each with its own seed."""
    for seed, own in enumerate(options):
        result = result_of(method, seed, 0.5, **more)
        write_run(root / str(seed), result, config_of(result, own))


@pytest.mark.parametrize(
    ("method", "auxiliaries", "option"),
    [
        ("finetune", [], "method.stages.last_finetune.lr"),
        ("finetune", [], "auxiliary.size"),
        ("finetune", [], "auxiliary.dapt.path"),
        ("finetune", [], "auxiliary.decontaminate"),
        ("finetune", [], "task.domain"),
        ("tapt", ["tapt"], "auxiliary.size"),
        ("tapt", ["tapt"], "auxiliary.seed"),
        ("tapt", ["tapt"], "auxiliary.dapt.objective.masked"),
        ("finetune", [], "weighting._target_"),
        ("dapt", ["dapt"], "weighting._target_"),
        ("finetune", [], "encoder.lr.finetune"),
        ("finetune", [], "evaluation_batch_size"),
    ],
)
def test_an_option_that_was_not_read_is_no_difference(tmp_path, method, auxiliaries, option):
    write_seeds(tmp_path, method, [{option: 1}, {option: 2}], auxiliaries=auxiliaries)
    (setting,) = bench_of(tmp_path).settings
    assert len(setting.runs) == 2


@pytest.mark.parametrize(
    ("auxiliaries", "option"),
    [
        (["dapt"], "auxiliary.size"),
        (["dapt"], "weighting.lr"),
        (["dapt"], "auxiliary.dapt.objective.masked"),
        (["tapt"], "auxiliary.decontaminate"),
    ],
)
def test_an_option_that_was_read_is_a_difference(tmp_path, auxiliaries, option):
    write_seeds(tmp_path, "mt_tartan", [{option: 1}, {option: 2}], auxiliaries=auxiliaries)
    bench = bench_of(tmp_path)
    assert list(differing_options(bench.settings)) == [option]


def test_the_precision_is_the_one_that_was_used(tmp_path):
    """Two machines' `auto`, and one of them given by name; older results do not tell."""
    runs = [("auto", "bf16-mixed"), ("auto", "32-true"), ("32-true", "32-true"), ("auto", "")]
    for seed, (given, used) in enumerate(runs):
        result = altered(result_of("finetune", seed, 0.5), "machine.precision", used)
        write_run(tmp_path / str(seed), result, config_of(result, {"trainer.precision": given}))
    bench = bench_of(tmp_path)
    assert {s.label: sorted(s.scores("whole")) for s in bench.settings} == {
        "Fine-tuning [trainer.precision=bf16-mixed]": [0],
        "Fine-tuning [trainer.precision=32-true]": [1, 2],
        "Fine-tuning [trainer.precision=auto]": [3],
    }


def test_equal_numbers_are_no_difference(tmp_path):
    name = "method.stages.finetune"
    options = [
        {f"{name}.a": 30, f"{name}.b": [1, {"c": 2}]},
        {f"{name}.a": 30.0, f"{name}.b": [1.0, {"c": 2.0}]},
    ]
    write_seeds(tmp_path, "finetune", options)
    assert len(bench_of(tmp_path).settings) == 1


def test_a_tasks_own_size_is_the_one_that_is_read(tmp_path):
    own = {"auxiliary.dapt.size": 3}
    options = [{"auxiliary.size": size} | own for size in (1, 2)]
    write_seeds(tmp_path, "dapt", options, auxiliaries=["dapt"], size=3)
    assert len(bench_of(tmp_path).settings) == 1


def test_options_of_composed_objectives_are_read(tmp_path):
    result = result_of("aang", 0, 0.5, auxiliaries=["dapt"])
    result["auxiliaries"] = {"domain-mask-bidirectional-denoise": result["auxiliaries"]["dapt"]}
    for path in ("a.txt", "b.txt"):
        options = {"auxiliary.aang.data.domain.path": path}
        write_run(tmp_path / path, result, config_of(result, options))
    assert labels(bench_of(tmp_path)) == [
        f"AANG, 1 composed objectives + domain text 10x ({path})" for path in ("a.txt", "b.txt")
    ]


def test_every_label_is_different_however_many_options_it_takes(tmp_path):
    """Three options are shown where fewer would do, and more where they have to be."""
    names = [f"method.stages.finetune.optimisation.o{i}" for i in range(5)]
    for place in range(6):
        options = {name: int(index == place) for index, name in enumerate(names)}
        write_setting(tmp_path, f"s{place}", "finetune", [0.5], options=options)
    found = labels(bench_of(tmp_path))
    assert len(set(found)) == 6
    assert found[5] == (
        "Fine-tuning [optimisation.o0=0, optimisation.o1=0, optimisation.o2=0, optimisation.o3=0, "
        "optimisation.o4=0]"
    )
    assert all("..." not in label for label in found)


def test_options_that_need_not_be_shown_are_hinted_at(tmp_path):
    for place in range(2):
        options = {f"method.stages.finetune.o{i}": place for i in range(5)}
        write_setting(tmp_path, f"s{place}", "finetune", [0.5], options=options)
    assert labels(bench_of(tmp_path))[1] == (
        "Fine-tuning [finetune.o0=1, finetune.o1=1, finetune.o2=1, ...]"
    )


def test_options_of_two_stages_are_told_apart(tmp_path):
    for name, (tapt, finetune) in {"a": (1, 2), "b": (2, 1), "c": (1, 1)}.items():
        options = {
            "method.stages.tapt.optimisation.lr": tapt,
            "method.stages.finetune.optimisation.lr": finetune,
        }
        write_setting(tmp_path, name, "tapt", [0.5], options=options, auxiliaries=["tapt"])
    assert "TAPT [finetune.optimisation.lr=2, tapt.optimisation.lr=1]" in labels(bench_of(tmp_path))


def test_options_that_labels_leave_out_are_shown_where_no_others_differ(tmp_path):
    for value in ("balanced", None):
        options = {"classifier.class_weights": value}
        write_setting(tmp_path, str(value), "finetune", [0.5], options=options)
    assert labels(bench_of(tmp_path)) == [
        "Fine-tuning [classifier.class_weights=null]",
        "Fine-tuning [classifier.class_weights=balanced]",
    ]


def test_settings_that_no_option_tells_apart_are_named_by_their_folder(tmp_path):
    for name in ("a", "b"):
        result = result_of("dapt", 0, 0.5, auxiliaries=["dapt"])
        result = altered(result, "auxiliaries.dapt.fingerprint", name)
        write_run(tmp_path / name, result)
    assert labels(bench_of(tmp_path)) == ["DAPT 10x [a]", "DAPT 10x [b]"]


def test_short_labels_are_different_too(tmp_path):
    names = ("x" * 80 + "a", "x" * 80 + "b", "a" + "x" * 80, "b" + "x" * 80, "y" * 40)
    for name in (*names, "x" * 100, "x" * 101):
        write_setting(tmp_path, name, name, [0.5])
    settings = bench_of(tmp_path).settings
    assert len({setting.short for setting in settings}) == 7
    assert max(len(setting.short) for setting in settings) == 60
    assert all(setting.short == setting.label for setting in settings if len(setting.label) < 60)


OURS, MINE = "tartan.methods.meta_tartan.MetaTartan", "mine.fixed_embeddings.FixedEmbeddings"


@pytest.mark.parametrize(
    ("module", "label"),
    [
        (OURS, "META-TARTAN, TAPT"),
        (MINE, "META-TARTAN (FixedEmbeddings), TAPT"),
        ("tartan.methods.mt_tartan.MTTartan", "META-TARTAN (MTTartan), TAPT"),
        ("mine.methods.MetaTartan", "META-TARTAN (mine.methods.MetaTartan), TAPT"),
    ],
)
def test_a_method_with_another_module_is_named_so(tmp_path, module, label):
    options = {"method.stages.joint.module": module}
    write_setting(tmp_path, "a", "meta_tartan", [0.5], options=options, auxiliaries=["tapt"])
    assert labels(bench_of(tmp_path)) == [label]


def test_another_stages_module_is_named_with_the_stage(tmp_path):
    options = {
        "method.stages.tapt.module": "tartan.methods.continued_pretraining.ContinuedPretraining",
        "method.stages.finetune.module": MINE,
    }
    write_setting(tmp_path, "a", "tapt", [0.5], options=options, auxiliaries=["tapt"])
    write_setting(tmp_path, "b", "mine2", [0.5], options={"method.stages.joint.module": MINE})
    assert labels(bench_of(tmp_path)) == ["TAPT (finetune: FixedEmbeddings)", "mine2"]


def test_earlier_names_of_modules_are_no_variants(tmp_path):
    options = {"method.stages.finetune.module": "tartan.methods.finetuning.Finetuning"}
    write_setting(tmp_path, "a", "finetune", [0.5], options=options)
    assert labels(bench_of(tmp_path)) == ["Fine-tuning"]


@pytest.mark.parametrize("method", [method for method in STAGES if method in METHODS])
def test_the_papers_methods_are_no_variants_of_themselves(method):
    config = config_of_command([f"method={method}"])
    for name, stage in config.method.stages.items():
        assert stage.module == f"tartan.methods.{usual_module(method, name)[0]}"


def test_corpora_are_named_where_they_differ(tmp_path):
    """Also where their sizes differ, which alone would tell the settings apart."""
    for size, path in ((1, "/texts/news.txt"), (10, "other/news.txt"), (2, None)):
        write_setting(
            tmp_path, str(size), "dapt", [0.5], auxiliaries=["dapt"], size=size,
            options={"auxiliary.dapt.path": path},
        )  # fmt: skip
    bench = bench_of(tmp_path)
    assert labels(bench) == ["DAPT 1x (texts/news.txt)", "DAPT 2x", "DAPT 10x (other/news.txt)"]


def test_one_corpus_is_not_named(tmp_path):
    for size in (1, 10):
        write_setting(
            tmp_path, str(size), "mt_tartan", [0.5], auxiliaries=["dapt"], size=size,
            options={"auxiliary.dapt.path": "news.txt"},
        )  # fmt: skip
    assert labels(bench_of(tmp_path)) == ["MT-TARTAN, DAPT 1x", "MT-TARTAN, DAPT 10x"]


@pytest.mark.parametrize(
    ("path", "hub", "domain", "name"),
    [
        ("a/b.txt", None, "c.txt", "b.txt"),
        (None, "org/texts", "c.txt", "texts"),
        (None, None, "c.txt", "c.txt"),
    ],
)
def test_a_corpus_may_be_of_the_hub_or_the_tasks_option(tmp_path, path, hub, domain, name):
    options = {
        "auxiliary.dapt.path": path, "auxiliary.dapt.hub": hub, "task.domain": domain,
    }  # fmt: skip
    more = {"auxiliaries": ["dapt"]}
    write_setting(tmp_path, "a", "dapt", [0.5], options=options, **more)
    write_setting(tmp_path, "b", "mt_tartan", [0.5], **more)
    assert labels(bench_of(tmp_path)) == [f"DAPT 10x ({name})", "MT-TARTAN, DAPT 10x"]


def write_data(root, name, options, seed=0):
    """A run on data that only it has."""
    result = altered(result_of("finetune", seed, 0.5), "fingerprints.train", name * 64)
    write_run(root / name, result, config_of(result, options))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (
            [{"task.train": "/x/a.csv"}, {"task.train": "/x/b.csv"}],
            ["task.train=a.csv", "task.train=b.csv"],
        ),
        (
            [{"task.train": "/x/a.csv"}, {"task.train": "/y/a.csv"}],
            ["task.train=x/a.csv", "task.train=y/a.csv"],
        ),
        (
            [{"task.test_share": 0.2, "task.max_length": 9}, {"task.test_share": 0.1}],
            ["task.test_share=0.2", "task.test_share=0.1"],
        ),
        (
            [{"task.split_seed": 0}, {"task.split_seed": 1}],
            ["task.split_seed=0", "task.split_seed=1"],
        ),
        ([{"task.max_length": 64}, {"task.max_length": 9}],
         ["task.max_length=64", "task.max_length=9"]),
        ([{"seed": 0}, {"seed": 0}], ["data ", "data "]),
    ],
)  # fmt: skip
def test_data_of_one_task_are_named_by_the_options_that_differ(tmp_path, options, names):
    for name, own in zip("ab", options, strict=True):
        write_data(tmp_path, name, {"task.metric": "macro_f1", **own})
    found = [bench.label for bench in benchmarks_of(read_all(tmp_path))]
    assert len(set(found)) == 2
    for label, name in zip(sorted(found), sorted(names), strict=True):
        assert label.startswith(f"toy, tiny, {name}")
        assert ("data" in label) == (name == "data ")


def test_data_that_options_tell_in_part_have_a_hash_too(tmp_path):
    for name, train in (("a", "a.csv"), ("b", "a.csv"), ("c", "c.csv")):
        write_data(tmp_path, name, {"task.train": train})
    found = sorted(bench.label for bench in benchmarks_of(read_all(tmp_path)))
    assert found[2] == "toy, tiny, task.train=c.csv"
    assert all(label.startswith("toy, tiny, task.train=a.csv, data ") for label in found[:2])


def test_data_that_each_seed_draws_are_named_so(tmp_path):
    for seed in range(3):
        write_drawn(tmp_path / f"drawn{seed}", result_of("finetune", seed, 0.5), seed)
    for seed in range(2):
        write_drawn(tmp_path / f"fixed{seed}", result_of("finetune", seed, 0.5), 5)
    found = {bench.label: len(bench.runs) for bench in benchmarks_of(read_all(tmp_path))}
    assert found == {
        "toy, tiny, task.split_seed=each run's": 3,
        "toy, tiny, task.split_seed=5": 2,
    }
