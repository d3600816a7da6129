"""The help of every program: few flags, in groups, and all of them with --helpfull."""

import re

import pytest
from absl import flags as absl_flags

from bert_tf import flags, recipes
from bert_tf.flags.help import groups, help_text
from bert_tf.flags.options import default_of, fields_of, shown
from bert_tf.flags.parsing import define
from bert_tf.tasks.named import TASKS
from tests.programs import names, program

MOST = 40


def listed(text):
    """The flags that a help text shows."""
    return [name.removeprefix("[no]") for name in re.findall(r"^  --([\w\[\]]+)", text, re.M)]


@pytest.mark.parametrize("command", names())
def test_help_shows_few_flags_in_groups_and_helpfull_all(command):
    classes = program(command).classes
    known = {field.name for kind in classes for field in fields_of(kind)}
    short, full = (listed(help_text("", classes, is_full=is_full)) for is_full in (False, True))
    assert len(short) <= MOST and set(short) <= set(full)
    assert len(full) == len(set(full)) and set(full) == known
    hidden = len(full) - len(short)
    assert (f"\n{hidden} more: --helpfull" in help_text("", classes)) == bool(hidden)


@pytest.mark.parametrize("command", names())
def test_help_begins_with_a_short_sentence(command):
    line, *rest = program(command).doc.splitlines()
    assert line.endswith(".") and len(line) <= 80 and not "".join(rest[:1])


@pytest.mark.parametrize("command", names())
def test_each_flag_has_a_help_and_a_group_with_a_title(command):
    found = groups(program(command).classes)
    for kind, fields in found.items():
        assert len(kind.__doc__) > 5 and not kind.__doc__.startswith(f"{kind.__name__}("), kind
        for field, _ in fields:
            assert re.search(r"[.)]$", field.metadata["help"]), field.name


@pytest.mark.parametrize("command", names())
def test_each_default_can_be_given(command):
    """On a command line, with the same value and type."""
    for kind in program(command).classes:
        values, given = absl_flags.FlagValues(), {}
        define(kind, values)
        for field in fields_of(kind):
            if default := default_of(field):
                given[field.name] = default
        values([command, *(f"--{name}={shown(default)}" for name, default in given.items())])
        assert {name: getattr(values, name) for name in given} == given, kind


@pytest.mark.parametrize("task", ["cola", "sst-2", "mrpc", "sts-b", "mnli", "qqp", "qnli", "rte"])
def test_help_names_the_defaults_of_glue(task):
    text = " ".join(help_text("", program("bert-finetune classifier").classes).split())
    for name, value in vars(TASKS[task].defaults).items():
        option = re.search(rf"--{name}=(.*?) --", text)[1]
        assert float(re.search(r"default \(GLUE: ([\d.e-]+)\)", option)[1]) == value


@pytest.mark.parametrize("recipe", recipes.RECIPES)
@pytest.mark.parametrize("command", ["bert-create-pretraining-data", "bert-run-pretraining"])
def test_options_of_a_recipe_are_shown_with_it(command, recipe):
    found = program(command)
    shown = listed(help_text("", found.classes, recipe=found.recipe({"recipe": recipe})))
    assert len(shown) <= MOST


@pytest.mark.parametrize("command, recipe, shown, hidden", [
    ("bert-run-pretraining", "electra", "disc_weight", "teacher"),
    ("bert-run-pretraining", "mobilebert", "teacher", "disc_weight"),
    ("bert-create-pretraining-data", "albert", "ngram", "span_upper"),
    ("bert-create-pretraining-data", "spanbert", "span_upper", "ngram"),
    ("bert-create-pretraining-data", "xlnet", "reuse_len", "objective"),
    ("bert-create-pretraining-data", "t5", "objective", "reuse_len")])
def test_options_of_other_recipes_are_not(command, recipe, shown, hidden):
    found = program(command)
    text = listed(help_text("", found.classes, recipe=found.recipe({"recipe": recipe})))
    assert shown in text and hidden not in text
    assert {shown, hidden} <= set(listed(help_text("", found.classes, is_full=True)))
    assert not {shown, hidden} & set(listed(help_text("", found.classes)))


@pytest.mark.parametrize("command", [name for name in names() if "grid" in {
    field.name for kind in program(name).classes for field in fields_of(kind)}])
def test_the_help_of_grid_names_its_lists_which_helpfull_shows(command):
    text = help_text("", program(command).classes)
    for flag in ("train_batch_size", "learning_rate", "num_train_epochs"):
        assert f"--grid_{flag}" in re.sub(r"-\n +", "-", text), command


def test_values_of_a_flag_show_its_options():
    classes = program("bert-finetune classifier").classes
    assert "lstm_size" not in listed(help_text("", classes))
    assert "lstm_size" in listed(help_text("", classes, given={"head": "attentive"}))


@pytest.mark.parametrize("recipe", recipes.RECIPES.values(), ids=lambda recipe: recipe.name)
def test_settings_are_for_the_recipes_whose_learner_takes_them(recipe):
    from bert_tf import training
    wanted = getattr(training, recipe.learner).settings_class
    for kind in (training.GeneratorSettings, training.TransferSettings):
        scopes = [field.metadata["for"] for field in fields_of(kind)]
        assert any(scope.holds(recipe) for scope in scopes if not scope.flag) == (kind is wanted)


def test_a_setting_of_another_learner_is_refused():
    from bert_tf.training import GeneratorSettings
    with pytest.raises(ValueError, match="^--temperature=2.0 is for recipes with a generator, such "
                       "as electra; leave the flag out with --recipe=bert.$"):
        flags.check(GeneratorSettings(temperature=2.0), recipes.find("bert"))


@pytest.mark.parametrize("recipe, values", [
    ("distilbert", {"layer_wise_warmup": True, "teacher": "t"}),
    ("tinybert", {"gamma_distill_factor": 9.0}), ("dual_training", {"num_distill_steps": 9}),
    ("small_vocabulary", {"distill_ground_truth_ratio": 0.0}),
    ("mobilebert", {"alpha_ce": 9.0}), ("mobilebert", {"teacher_layers": ["0"]}),
    ("mobilebert_transfer", {"project_up": True}), ("mobilebert", {"restrict_ce_to_mask": True}),
    ("tinybert", {"alpha_ce": 9.0}), ("tinybert", {"distill_temperature": 9.0}),
    ("distilbert", {"project_up": True}), ("small_vocabulary", {"alpha_cos": 9.0}),
    ("mobilebert", {"gamma_distill_factor": 9.0})])
def test_a_setting_of_another_recipe_with_a_teacher_is_refused(recipe, values):
    from bert_tf.training import TransferSettings
    with pytest.raises(
            ValueError, match=f"is for (recipes such as .*--recipe={recipe}|--layer_wise_warmup)"):
        flags.check(TransferSettings(**values), recipes.find(recipe))


@pytest.mark.parametrize("values", [
    {"electra_objective": False, "temperature": 2.0},
    {"uniform_generator": True, "generator_layers": 0.5},
    {"untied_generator": False, "generator_hidden_size": 0.5}])
def test_settings_of_a_generator_that_is_not_there_are_refused(values):
    from bert_tf.training import GeneratorSettings
    switch, idle = values
    with pytest.raises(ValueError, match=f"^--{idle} changes nothing with --{switch}="):
        GeneratorSettings(**values)


def test_settings_of_a_term_that_is_left_out_are_refused():
    from bert_tf.training import Electra, GeneratorSettings
    from tests.training import tiny
    masked, _ = recipes.find("electra").terms
    Electra.of_terms(tiny.config(), [masked], "float32", GeneratorSettings(gen_weight=2.0))
    with pytest.raises(ValueError, match="^--disc_weight changes nothing with --terms=masked_lm;"):
        Electra.of_terms(tiny.config(), [masked], "float32", GeneratorSettings(disc_weight=10.0))


def test_words_of_a_teacher_are_copied_with_its_layers_alone():
    from bert_tf.training import TransferSettings
    with pytest.raises(ValueError, match="--vocab_transform=true is for --teacher_layers"):
        TransferSettings(vocab_transform=True)
