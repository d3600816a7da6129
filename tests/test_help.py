"""The help of every program: few flags, in groups, and all of them with --helpfull."""

import re
import types
from unittest import mock

import pytest
from absl import flags as absl_flags

from bert_tf import recipes
from bert_tf.errors import InputError
from bert_tf.flags import CommandLine, options
from bert_tf.flags.help import groups, help_text
from bert_tf.flags.options import default_of, fields_of, is_required, shown
from bert_tf.flags.parsing import define, types_of
from bert_tf.tasks.named import TASKS
from tests.programs import names, program

MOST = 40


def listed(text):
    """The flags that a help text shows."""
    return [name.removeprefix("[no]") for name in re.findall(r"^  --([\w\[\]]+)", text, re.M)]


def line(command, **given):
    """The `CommandLine` of a program with some flags."""
    found = program(command)
    arguments = [f"--{name}={shown(value)}" for name, value in given.items()]
    return CommandLine.open([command, *arguments], found.classes, found.defaults, found.adds)


@pytest.mark.parametrize("command", names())
def test_help_shows_few_flags_in_groups_and_helpfull_all(command):
    found = line(command)
    short, full = (listed(help_text("", found, is_full)) for is_full in (False, True))
    assert len(short) <= MOST and set(short) <= set(full)
    assert len(full) == len(set(full)) and set(full) == {*found.names}
    hidden = len(full) - len(short)
    assert (f"\n{hidden} more: --helpfull" in help_text("", found)) == bool(hidden)


def test_a_classifier_has_few_flags():
    """Flags of own files, of tuned models and of choices exist where they have a use."""
    found = line("bert-finetune", task="mrpc", do_train=True, init_checkpoint="bert")
    assert len(listed(help_text("", found, is_full=True))) <= 70


@pytest.mark.parametrize("command", names())
def test_help_begins_with_a_short_sentence(command):
    line, *rest = program(command).doc.splitlines()
    assert line.endswith(".") and len(line) <= 80 and not "".join(rest[:1])


@pytest.mark.parametrize("command", names())
def test_each_flag_has_a_help_and_a_group_with_a_title(command):
    found = groups(program(command).every_class())
    for kind, fields in found.items():
        assert len(kind.__doc__) > 5 and not kind.__doc__.startswith(f"{kind.__name__}("), kind
        for field, _ in fields:
            assert re.search(r"[.)]$", field.metadata["help"]), field.name


@pytest.mark.parametrize("command", names())
def test_each_default_can_be_given(command):
    """On a command line, with the same value and type."""
    for kind in program(command).every_class():
        values, given = absl_flags.FlagValues(), {}
        define(kind, values)
        for field in fields_of(kind):
            if default := default_of(field):
                given[field.name] = list(default) if isinstance(default, tuple) else default
        values([command, *(f"--{name}={shown(default)}" for name, default in given.items())])
        assert {name: getattr(values, name) for name in given} == given, kind


@pytest.mark.parametrize("task", ["cola", "sst-2", "mrpc", "sts-b", "mnli", "qqp", "qnli", "rte"])
def test_help_names_the_defaults_of_glue(task):
    text = " ".join(help_text("", line("bert-finetune")).split())
    for name, value in vars(TASKS[task].defaults).items():
        option = re.search(rf"--{name}=(.*?) --", text)[1]
        assert float(re.search(r"default \(GLUE: ([\d.e-]+)\)", option)[1]) == value


@pytest.mark.parametrize("recipe", recipes.RECIPES)
@pytest.mark.parametrize("command", ["bert-create-pretraining-data", "bert-run-pretraining"])
def test_the_help_of_a_recipe_is_short(command, recipe):
    assert len(listed(help_text("", line(command, recipe=recipe)))) <= MOST


@pytest.mark.parametrize("command, recipe, own, other, owners", [
    ("bert-run-pretraining", "electra", "disc_weight", "teacher", "mobilebert, .* others"),
    ("bert-run-pretraining", "mobilebert", "teacher", "disc_weight", "electra, deberta_v3"),
    ("bert-run-pretraining", "xlnet", "perm_size", "alpha_ce", "distilbert"),
    ("bert-create-pretraining-data", "albert", "ngram", "span_upper", "spanbert"),
    ("bert-create-pretraining-data", "spanbert", "span_upper", "ngram", "albert, deberta, .*"),
    ("bert-create-pretraining-data", "xlnet", "reuse_len", "objective", "t5"),
    ("bert-create-pretraining-data", "t5", "objective", "reuse_len", "xlnet"),
    ("bert-create-pretraining-data", "ltr", "random_next_sentence", "masked_lm_prob", "bert, .*")])
def test_a_recipe_has_its_own_flags(command, recipe, own, other, owners):
    found = line(command, recipe=recipe)
    shown_flags = listed(help_text("", found, is_full=True))
    assert own in shown_flags and other not in shown_flags
    found.arguments.append(f"--{other}=1")
    with pytest.raises(InputError, match=f"^there is no --{other} with --recipe={recipe}; it is "
                       f"for --recipe={owners}.$"):
        found.parse(absl_flags.FlagValues())


def conditional():
    """Each dataclass with an option that does not always exist, with the option's field."""
    kinds = dict.fromkeys(kind for name in names() for kind in program(name).every_class())
    return [pytest.param(kind, field, id=f"{kind.__name__}.{field.name}")
            for kind in kinds for field in fields_of(kind) if field.metadata["when"]]


def other_value(field, type_):
    """A value of an option that is not its default."""
    if field.metadata["choices"]:
        value = next(one for one in field.metadata["choices"] if one not in (
            default_of(field) if isinstance(default_of(field), (list, tuple))
            else [default_of(field)]))
        return [value] if type_ is list else value
    bounds = field.metadata["bounds"]
    most, least = bounds.get("most", bounds.get("below")), bounds.get("least", bounds.get("above"))
    number = next(number for number in (7, 0.375, 0.25) if (
        most is None or number <= most) and number != default_of(field))
    number = max(number, least or 0)
    return {bool: not default_of(field), str: "x", int: int(number) or 1, float: float(number),
            list: [str(number)]}[type_]


@pytest.mark.parametrize("kind, field", conditional())
def test_an_option_is_refused_where_it_does_not_exist(kind, field):
    """On command lines and in dataclasses, with one sentence."""
    when, type_ = field.metadata["when"], types_of(kind)[field.name]
    controls = {each.name: each for each in fields_of(kind)}
    if when.flag not in controls:
        return
    control = controls[when.flag]
    value = other_value(field, type_)
    given = {each.name: ["x"] if types_of(kind)[each.name] is list else "x"
             for each in fields_of(kind) if is_required(each)}
    if when.is_without:
        given[control.name] = other_value(control, types_of(kind)[control.name])
    elif when.values and default_of(control) in (*when.values, None):
        other = [one for one in control.metadata["choices"] or [False] if one not in when.values]
        if not other:
            return
        given[control.name] = other[0]
    arguments = [f"--{name}={shown(each)}" for name, each in {**given, field.name: value}.items()]
    with pytest.raises(InputError, match=f"^there is no --{field.name} with(out)? --{when.flag}"):
        CommandLine.open(["x", *arguments], [kind]).parse(absl_flags.FlagValues())
    settings = types.SimpleNamespace(**{
        each.name: given.get(each.name, default_of(each)) for each in fields_of(kind)})
    setattr(settings, field.name, value)
    with (mock.patch.object(options, "fields_of", lambda _: fields_of(kind)),
          pytest.raises(InputError, match=f"^there is no --{field.name} with(out)? --{when.flag}")):
        options.check(settings)


@pytest.mark.parametrize("command", [name for name in names() if "grid" in {
    field.name for kind in program(name).classes for field in fields_of(kind)}])
def test_the_help_of_grid_shows_its_lists(command):
    text = help_text("", line(command, grid=True))
    for flag in ("train_batch_size", "learning_rate", "num_train_epochs"):
        assert f"--grid_{flag}" in re.sub(r"-\n +", "-", text), command


def test_values_of_a_flag_show_its_options():
    command = "bert-finetune"
    assert "lstm_size" not in listed(help_text("", line(command)))
    assert "lstm_size" in listed(help_text("", line(command, head="attentive")))


def test_settings_of_a_term_that_is_left_out_are_refused():
    from bert_tf.models.electra.learner import Electra
    from bert_tf.models.electra.settings import GeneratorSettings
    from tests.training import tiny
    masked, _ = recipes.find("electra").terms
    Electra.of_terms(tiny.config(), [masked], "float32", GeneratorSettings(gen_weight=2.0))
    with pytest.raises(ValueError, match="^--disc_weight changes nothing with --terms=masked_lm;"):
        Electra.of_terms(tiny.config(), [masked], "float32", GeneratorSettings(disc_weight=10.0))
