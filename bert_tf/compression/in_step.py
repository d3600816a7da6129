"""A teacher that is asked in every step: its internals, too, are compared with the student's."""

from bert_tf.compression.teachers import Teacher
from bert_tf.config import Sizes
from bert_tf.errors import InputError
from bert_tf.models.tinybert.objective import layer_ratio
from bert_tf.objectives.base import Objective
from bert_tf.opening import open_model
from bert_tf.recipes.distillation import Distillation
from bert_tf.tokenization import Tokenizer, find_vocabulary, open_tokenizer
from bert_tf.training.learners.distiller import Distiller, make_term


class InStep(Teacher):
    """A fine-tuned model that teaches in every step, by the row of a recipe."""

    def __init__(self, folder: str, row: Distillation):
        super().__init__(folder)
        self._row = row

    def check(self, config: Sizes, tokenizer: Tokenizer, max_seq_length: int) -> None:
        own = find_vocabulary(self.folder)
        if own and open_tokenizer(own).vocabulary.tokens != tokenizer.vocabulary.tokens:
            raise InputError(f"--recipe={self._row.name} compares each token's vectors, but the "
                             f"student and --teacher={self.folder} have different vocabularies; "
                             "give the teacher's vocabulary as --vocab_file, or take another "
                             "recipe.")
        self.check_length(max_seq_length)
        layer_ratio(config.depth, self.config.depth)    # type: ignore[attr-defined]
        heads = config.num_attention_heads, self.config.num_attention_heads  # type: ignore
        if heads[0] != heads[1]:
            raise InputError(f"--recipe={self._row.name} compares attention head by head, but the "
                             f"student has {heads[0]} heads and --teacher={self.folder} has "
                             f"{heads[1]}; set the student's num_attention_heads to the teacher's.")
        for name, sizes in (("the student", config), (f"--teacher={self.folder}", self.config)):
            if sizes.pruned_heads:
                raise InputError(f"--recipe={self._row.name} compares attention head by head, but "
                                 f"{name} has pruned heads; take a model with all heads, or "
                                 "another recipe.")
            if sizes.has_local_layers:
                raise InputError(f"--recipe={self._row.name} compares attention head by head, but "
                                 f"in local layers of {name} a token sees near tokens only; give "
                                 "a recipe that compares answers, such as soft_labels.")
        widths = config.hidden_size, self.config.hidden_size
        if widths[0] != widths[1] and any(
                term.objective == "InternalCosine" for term in self._row.terms):
            raise InputError(f"--recipe={self._row.name} compares vectors by their cosine, but the "
                             f"student is {widths[0]} wide and --teacher={self.folder} is "
                             f"{widths[1]} wide; set the student's hidden_size to the teacher's.")

    def objectives(self, config: Sizes, dtype: str | None = None) -> list[Objective]:
        return [make_term(term, config, self.config, dtype) for term in self._row.terms]

    def learner(self, network, objectives: list[Objective]) -> Distiller:
        teacher = open_model(self.folder, finetuned=True).learner(network.dtype_policy.name)
        return Distiller(network, objectives, teacher=teacher)
