"""README and docs name only what exists, and their short commands work."""

import ast
import pathlib
import re
import shlex

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints.huggingface import _OWN_FILES as OWN_FILES
from bert_tf.checkpoints.huggingface_models import MODELS
from bert_tf.config import CONFIGS, EncoderConfig
from bert_tf.config.sizes import PRESETS
from bert_tf.finetuning.paper_defaults import DEFAULTS
from bert_tf.recipes import RECIPES
from run_scripts import commands
from run_scripts.analysis.model import SHOWN
from tests import programs
from tests.programs import fields, names

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md"))
PATHS = {str(path.relative_to(ROOT)).removeprefix("docs/"): path for path in PAGES}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PATHS.items()}
# Flags of other programs, and of all programs.
FOREIGN = {"logdir", "na-prob-file", "help", "helpfull", "flagfile"}
PROGRAMS = {command: commands.programs(command) for command in commands.SEVERAL}
SHELL_SCRIPTS = {"run_scripts/quickstart.sh": programs.QUICKSTART}


def command_lines(text):
    """The commands in the indented blocks of a page, each a list of words."""
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"^ {4,}(?:\$ )?((?:bert-[a-z]|bash run_scripts/).*)$", joined, re.M)
    for line in lines:
        words = shlex.split(line.replace("...", ""), comments=True)
        if words[0] == "bash":
            words = [SHELL_SCRIPTS.get(words[1], ""), *words[2:]]
        if words[0]:
            yield words


def find_command(page, beginning, number=0):
    found = [words for words in command_lines(TEXTS[page]) if " ".join(words).startswith(beginning)]
    return found[number]


@pytest.mark.parametrize("page", TEXTS)
def test_commands_and_their_flags_exist(page):
    for command, *arguments in command_lines(TEXTS[page]):
        known = fields(shlex.join([command, *arguments]))
        for argument in arguments[bool(arguments) and arguments[0] in PROGRAMS.get(command, ()):]:
            assert argument.startswith("--"), f"{command} {argument}"
            name, _, value = argument[2:].partition("=")
            if name == "help":
                continue
            field = known.get(name) or (known[name[2:]] if name.startswith("no") else None)
            assert field, f"{command} has no --{name}"
            choices = field.metadata["choices"]
            assert not choices or {*value.split(",")} <= {*choices}, f"{command} {argument}"


@pytest.mark.parametrize("page", TEXTS)
def test_names_in_the_text_exist(page):
    text = TEXTS[page]
    text = text.partition("## Earlier names")[0]
    named = set(re.findall(r"\bbert-(?!tiny|base-|large-)[a-z-]+[a-z]\b(?!\.)", text))
    assert named <= commands.COMMANDS.keys()        # others are names of models
    for command, name in re.findall(rf"`({'|'.join(PROGRAMS)}) ([a-z][a-z-]+)", text):
        assert name in PROGRAMS[command]
    known = set().union(*map(fields, names()))
    for name in re.findall(r"`--([\w-]+)", text):
        assert name in known | FOREIGN, f"--{name} is no flag of any command"
    paths = re.findall(
        r"\b((?:bert_tf|data_prep|run_scripts|benchmarks|papers|tests|docs)/[\w./]*)", text)
    for path in paths:
        assert (ROOT / path.rstrip(".")).exists(), f"there is no {path}"


def anchors(text):
    """What headings of a page can be linked to."""
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.M)}


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page):
    without_code = re.sub(r"```.*?```", "", TEXTS[page], flags=re.S)
    for target in re.findall(r"\]\(([^)]+)\)", without_code):
        if not target.startswith("http"):
            name, _, anchor = target.partition("#")
            path = PATHS[page].parent / name if name else PATHS[page]
            assert path.exists(), target
            assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), target


# Flags that name what a command reads, and what it writes.
READ = ("init_checkpoint", "vocab_file", "model_dir", "teacher", "student", "input", "predecessor",
        "bert_config_file", "ensemble", "fine_tuned_checkpoint")
WRITTEN = ("output_dir", "output", "output_file")


@pytest.mark.parametrize("page", [
    name for name in TEXTS if not name.startswith(("CHANGELOG", "results"))])
def test_what_a_command_reads_is_made_before_or_named(page):
    text = TEXTS[page]
    prose = re.sub(r"```[^`]*```", "", re.sub(r"^ {4,}.*$", "", text, flags=re.M))
    table = TEXTS["data.md"].partition("## Folders in these pages")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([^`\n]+)`", prose)) | set(re.findall(r"`([\w.-]+)`", table))
    made = {value.split("/")[0] for value in re.findall(r"to_json_file\('(.*?)'", text)} | set(
        re.findall(r" (?:-d|--local-dir) ([\w-]+)", text))
    for _, *arguments in command_lines(text):
        given = dict(argument[2:].partition("=")[::2] for argument in arguments)
        for value in ",".join(filter(None, map(given.get, READ))).split(","):
            folder = value.split("/")[0]
            assert not value or "://" in value or folder in made or {folder, value} & named, (
                f"{value} is not made before; make it, or name it for the reader")
        made |= {given[name].split("/")[0] for name in WRITTEN if given.get(name)}


def test_commands_of_a_page_write_to_different_places():
    """So that the page can be followed from its beginning in one folder. Two commands write one run
    together, and two formats of export share a folder."""
    shared = {("pretraining.md", "base_run"), ("export.md", "questions_onnx")}
    seen = set()
    for page in TEXTS.keys() - {"results.md"}:
        for _, *arguments in command_lines(TEXTS[page]):
            given = dict(argument[2:].partition("=")[::2] for argument in arguments)
            for place in filter(None, map(given.get, WRITTEN)):
                assert arguments[0] == "pretraining" or (page, place) not in seen - shared, place
                seen.add((page, place))


def test_hf_leaves_out_what_the_pages_exclude():
    """In huggingface_hub 0.34 to 0.36 the last --exclude is the only one. In later versions a word
    behind its pattern is the name of a file, for which --exclude is ignored."""
    commands_of_hf = [line for text in TEXTS.values() for line in re.findall(
        r"\bhf (?:down|up)load [^`\n|]*", re.sub(r"\\\n\s*", " ", text))]
    assert len(commands_of_hf) >= 6
    for line in commands_of_hf:
        assert line.count("--exclude") < 2 and not re.search(r"--exclude[= ]\S+ +[^- ]", line), line


def test_every_program_is_in_the_pages():
    text = " ".join(TEXTS.values())
    assert not [name for name in names() if f"`{name}" not in text and f"    {name}" not in text
                and f"| `{name.removeprefix('bert-benchmark ')}` |" not in TEXTS["results.md"]]


def test_the_table_of_commands_is_whole():
    rows = re.findall(r"^\| `(bert-[a-z-]+)(?: NAME)?` \| (.*) \|$", TEXTS["commands.md"], re.M)
    assert sorted(name for name, _ in rows) == sorted(commands.COMMANDS)
    for name, text in rows:
        assert set(re.findall(r"`(--[\w=]+)", text)) == commands.VARIANTS.get(name, {}).keys()


def test_the_front_page_is_short_and_every_page_is_linked():
    assert TEXTS["README.md"].count("\n") <= 120
    for name, path in PATHS.items():
        if path.is_relative_to(ROOT / "docs"):
            assert f"docs/{name}" in TEXTS["README.md"] or f"]({name}" in TEXTS["commands.md"]


def test_the_table_of_relatives_has_every_recipe():
    named = set()
    for row in re.findall(r"^\| (.*\]\(https.*|.*et al.*) \|$", TEXTS["relatives.md"], re.M):
        paper, names, _, sizes, *_ = row.split(" | ")
        for recipe in [RECIPES[name] for name in re.findall(r"`(\w+)`", names)]:
            known = {*recipe.presets, *PRESETS, recipe.tokenizer, "adaptive_", "_v2"}
            assert {*re.findall(r"`(\w+)`", sizes)} <= known, recipe.name
            assert recipe.source.rpartition(":")[2] in paper or "bert_wwm" == recipe.name
            named.add(recipe.name)
    assert named == RECIPES.keys()


def test_the_table_of_models_that_open_is_whole():
    """Types of Hugging Face's folders, their recipes, whether they have settings of their own for
    fine-tuning, and what other commands take them."""
    made = []
    for kind in (*MODELS, *OWN_FILES):
        types = (kind, *MODELS[kind].kin) if kind in MODELS else (kind,)
        recipes = [f"`{name}`" for name, recipe in RECIPES.items()
                   if recipe.sizes.get("model_type", "bert") in types]
        own = kind in DEFAULTS or kind == "t5"
        config = CONFIGS[kind]
        takes = {"bert-analyze": issubclass(config, SHOWN),
                 "bert-prune": config is EncoderConfig and kind != "albert",
                 "bert-quantise-model": config.can_be_rounded}
        made.append(f"| `{kind}` | {', '.join(recipes) or 'no recipe'} | "
                    f"{'of its paper' if own else 'of BERT'} | "
                    f"{' | '.join('yes' if each else 'no' for each in takes.values())} |")
    section = TEXTS["weights.md"].split("## Which models open")[1].split("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| `")][1:] == made


@pytest.mark.parametrize("page", TEXTS)
def test_python_in_the_pages_uses_public_names(page):
    for block in re.findall(r"```python\n(.*?)```", TEXTS[page], re.S):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "bert_tf":
                assert hasattr(bert_tf, node.attr)


# The short commands

def run(words, **changes):
    """A command in this process, with some flags changed; None leaves one out."""
    command, *arguments = words
    arguments = [argument for argument in arguments
                 if argument[2:].partition("=")[0] not in changes]
    arguments += [f"--{name}={value}" for name, value in changes.items() if value is not None]
    main, configs = commands.parse([command, *arguments])
    main(*configs)


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """A folder with a text in books/, in which the commands of the page about pre-training ran."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "books").mkdir()
    nouns = "cat dog bird fish tree house river stone cloud road".split()
    text = "\n\n\n".join("\n".join(
        f"The {noun} and the {nouns[index % 10]} were near the {nouns[index // 7 % 10]} that day."
        for index, noun in enumerate(nouns, number)) for number in range(30))
    (folder / "books" / "one.txt").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(find_command("pretraining.md", "bert-extract-text"))
        run(find_command("pretraining.md", "bert-build-vocab"))
        make = "bert-create-pretraining-data"
        run(find_command("pretraining.md", make, 0), dupe_factor=1, num_workers=1)
        run(find_command("pretraining.md", make, 1), num_workers=1)
        code = re.search(r'python -c "(.*?)"', TEXTS["pretraining.md"], re.S)[1]
        exec(code.replace("\\\n", "").replace("'mini'", "'tiny'"), {})
        tf.config.run_functions_eagerly(True)       # before the fixture of each test
        run(find_command("pretraining.md", "bert-run-pretraining"), num_train_steps=2,
            num_warmup_steps=1, train_batch_size=4, deterministic="false")
        tf.config.run_functions_eagerly(False)
    return folder


@pytest.fixture(autouse=True)
def fixture_here(request, monkeypatch):
    """Tests that use the folder are in it."""
    if "folder" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("folder"))


def test_pretraining_writes_what_the_page_lists(eagerly, folder):
    run(find_command("pretraining.md", "bert-verify-records"))
    # A command keeps its flags for this one; a call from Python does not.
    run(find_command("pretraining.md", "bert-analyze pretraining"), input_file="train.tfrecord",
        eval_input_file="held_out.tfrecord")
    made = {path.name for path in (folder / "run").iterdir()}
    assert {"metrics.jsonl", "tensorboard", "eval_results.txt", "model.keras"} <= made
    assert (folder / "curves.png").stat().st_size > 10_000


def test_vocabularies_of_every_kind_are_trained(folder):
    for number, name in enumerate(("bpe/vocab.json", "spiece.model"), 1):
        run(find_command("pretraining.md", "bert-build-vocab", number))
        assert bert_tf.tokenization.open_tokenizer(name).encode("The cat")


def test_weights_are_converted(folder):
    run(find_command("weights.md", "bert-convert-checkpoint"), input="run/model.keras",
        vocab_file="vocab.txt")
    assert {"config.json", "model.safetensors", "vocab.txt"} <= {
        path.name for path in (folder / "hf").iterdir()}


def test_words_are_added(folder):
    run(find_command("weights.md", "bert-build-vocab"), init_vocab_file="vocab.txt",
        output_file="more/vocab.txt")
    words = (folder / "more" / "vocab.txt").read_text(encoding="utf-8").split()
    assert "covid" in words and "ehealth" in words


def test_features_are_extracted(folder):
    (folder / "lines.txt").write_text("Who wrote Emma?\nWho wrote Emma? ||| Jane Austen did.\n")
    run(find_command("using_a_model.md", "bert-extract-features", 1), vocab_file="vocab.txt",
        init_checkpoint="run/model.keras")
    lines = (folder / "vectors.jsonl").read_text(encoding="utf-8").splitlines()
    assert [line[:17] for line in lines] == ['{"linex_index": 0', '{"linex_index": 1']


def test_documents_are_searched(folder, capsys):
    # A carriage return within a line ends none.
    for name, lines in (("documents", ["The cat and\rthe dog were near.", "Jane Austen did."]),
                        ("queries", ["Jane Austen did."])):
        (folder / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
        run(find_command("using_a_model.md", "bert-extract-features", 2), vocab_file="vocab.txt",
            init_checkpoint="run/model.keras", input_file=f"{name}.txt", output_file=f"{name}.npz")
    capsys.readouterr()
    exec(re.search(r"```python\n(import numpy.*?)```", TEXTS["using_a_model.md"], re.S)[1], {})
    assert capsys.readouterr().out == "['Jane Austen did.', 'The cat and\\rthe dog were near.']\n"


def test_embeddings_are_trained(folder, eagerly, capsys):
    encoder = bert_tf.BertEncoder.from_pretrained(folder / "run" / "model.keras")
    tokenizer = bert_tf.tokenization.open_tokenizer(str(folder / "vocab.txt"))
    tokenizer.save(str(folder / "minilm"))
    encoder.save(folder / "minilm" / "model.keras")

    def vector(text):
        mean = encoder(tokenizer([text]))["sequence_output"][0].numpy().mean(0)
        return mean / np.linalg.norm(mean)

    rows = [(f"where {word}", f"the {word} that day") for word in ("cat", "dog", "bird", "tree")]
    for name in ("pairs.csv", "dev_pairs.csv"):
        (folder / name).write_text("query,passage\n" + "".join(
            f"{query},{passage}\n" for query, passage in rows))
    code = re.search(r"```python\n(import csv.*?)```", TEXTS["using_a_model.md"], re.S)[1]
    seen: dict = {}
    exec(code, seen)
    assert re.search(r"MRR \S+ recall@10 1.0\n$", capsys.readouterr().out)
    for query, passage, hard in zip(*seen["texts"].values()):
        wrong = [other for _, other in rows if other != passage]
        assert hard == max(wrong, key=lambda text: vector(text) @ vector(query))
    run(find_command("using_a_model.md", "bert-convert-checkpoint"))
    tensors = bert_tf.checkpoints.read("search_hf").tensors
    table = tensors["embeddings/word_embeddings"].read()
    assert np.array_equal(table, seen["encoder"].embedding_table.numpy())


# English: phrases that hide the noun, and long sentences.

_BANNED = ("those of", "that of", "of which", "goes on", "of its own", "of their own", "drawn anew")
_LONGEST = 28       # words


def paragraphs(text):
    """Yields the paragraphs, items of lists and cells of tables of a page, without its code."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.S)
    for block in re.split(r"\n\s*\n", re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)):
        if not block.startswith("    "):
            for part in re.split(r"\n(?=\s*(?:[-*]|\d+\.) |\||#)", block):
                yield from part.strip("|").split(" | ") if part.startswith("|") else [part]


def long_sentences(text):
    """The sentences of more than 28 words. A colon or a semicolon ends a sentence, since a list
    follows or continues; items of an enumeration between commas do not count."""
    text = re.sub(r"`[^`]*`", "X", " ".join(text.split()))
    for sentence in re.split(r"(?<=[.!?:;])[)*]*\s+", text):
        counted = re.sub(r"(?:[\w-]+, ){4,}[\w-]+", "X", sentence)
        if len(re.findall(r"[\w'’-]+", counted)) > _LONGEST:
            yield sentence


@pytest.mark.parametrize("page", [page for page in TEXTS if page != "CHANGELOG.md"])
def test_pages_repeat_the_noun_in_short_sentences(page):
    parts = list(paragraphs(TEXTS[page]))
    assert [sentence for part in parts for sentence in long_sentences(part)] == []
    for phrase in _BANNED:
        found = [part for part in parts
                 if re.search(rf"\b{phrase}\b", " ".join(part.split()), re.I)]
        assert found == [], phrase


def test_help_repeats_the_noun_in_short_sentences():
    texts = {field.metadata["help"] for name in names() for field in fields(name).values()}
    assert [sentence for text in texts for sentence in long_sentences(text)] == []
    assert [text for text in texts for phrase in _BANNED
            if re.search(rf"\b{phrase}\b", text, re.I)] == []


def test_docstrings_begin_with_a_short_sentence():
    found = []
    for folder in ("bert_tf", "data_prep", "run_scripts", "benchmarks", "papers"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    text = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                    first = re.split(r"(?<=[.!?:;])\s", text)[0]
                    found += [(path.name, first)] if any(long_sentences(first)) else []
    assert found == []


def test_terms_of_the_glossary_are_in_order():
    terms = re.findall(r"^\| ([a-z][^|]*) \|", TEXTS["glossary.md"], re.M)[1:]
    assert len(terms) >= 25 and terms == sorted(terms)
