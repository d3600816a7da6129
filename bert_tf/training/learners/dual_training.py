"""A teacher that learns a student's vocabulary while the student learns from it (Zhao et al.,
arXiv:1909.11687).

Shapes: B batch, S sequence, V tokens of the student, W width of the teacher.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras import ops

from bert_tf import checkpoints, networks, objectives
from bert_tf.checkpoints.weights import variables
from bert_tf.config import Sizes
from bert_tf.data.batches.record_views import beside
from bert_tf.errors import InputError
from bert_tf.layers.base import Tensor, register
from bert_tf.layers.functions import seed_of_pass, split_seed
from bert_tf.objectives.base import Batch, Objective
from bert_tf.objectives.taught import LAYER_WEIGHTS, of_teacher
from bert_tf.training.learners.distiller import Distiller, load_teacher
from bert_tf.training.learners.learner import Learner
from bert_tf.training.learners.teacher_settings import TeacherSettings

# The feature that holds the teacher's outputs for its own text.
_OUTPUTS = "beside_outputs"
# In addition to the weights of layers: the vectors of the student's tokens.
_VECTORS = "word_vectors"


@register
class DualTraining(Distiller):
    """A Distiller whose teacher learns, too.

    The teacher's one objective, a `DualMaskedLM`, is among the objectives: the masked LM of texts
    whose words are each split with the teacher's or the student's vocabulary. The teacher's table
    has rows for both. The vectors of the student's tokens are compared with the student's, as the
    weights of layers are.

    No gradient of the comparison reaches the teacher. A batch has the teacher's text as `beside` of
    data/batches/record_views.py finds it; a batch to be scored does not. The student is saved.
    """

    one_task_a_batch = True     # the teacher's is not scored

    def __init__(self, encoder, objectives, teacher: Learner | None = None, **kwargs: Any):
        super().__init__(encoder, objectives, teacher, **kwargs)
        self.learning_teacher = self.teacher        # its weights are the learner's
        self.teacher.trainable = True
        if self.teacher.encoder.pooler:
            self.teacher.encoder.pooler.trainable = False

    @classmethod
    def open_teacher(cls, config: Sizes, terms: Sequence, dtype: str | None,
                     settings: TeacherSettings) -> Learner:
        """Reads the teacher and adds vectors for the tokens of `config`."""
        if not any(term.network == "teacher" for term in terms):
            raise InputError("--terms lacks dual_masked_lm, which trains the teacher; add it, or "
                             "give --recipe=small_vocabulary, where the teacher does not learn.")
        known = load_teacher(settings.teacher, dtype)
        sizes = teacher_config(settings, config)
        teacher = Learner(networks.build(sizes, name="teacher", dtype=dtype), [
            objectives.DualMaskedLM(sizes, config.vocab_size, dtype=dtype)])    # type: ignore
        values = variables(known)
        for name, variable in variables(teacher).items():
            value = values[name.replace("dual_masked_lm/", "masked_lm/")]
            if variable.shape != value.shape:
                value = ops.concatenate([value, variable[value.shape[0]:]])
            variable.assign(value)
        return teacher

    def call(self, batch: Batch, training: bool = False,
             dropout_seed: Tensor | None = None) -> dict[str, Any]:
        dropout_seed = seed_of_pass(dropout_seed, training, self.encoder.seed_generator)
        own, other = split_seed(dropout_seed, 2)
        if text := beside(batch):
            batch = {**batch, _OUTPUTS: {
                **self.teacher.run_network(text, training, other),
                "embedding_table": self.teacher.encoder.embedding_table}}
        return super().call(batch, training, own)

    def teach(self, batch: Batch) -> dict[str, Any]:
        features = super().teach(batch)
        vectors = ops.stop_gradient(        # of the student's tokens, which come last
            self.teacher.encoder.embedding_table[-self.encoder.config.vocab_size:])
        return _with_vectors(features, of_teacher(LAYER_WEIGHTS), vectors)

    def seen_by(self, objective: Objective, outputs: Any, batch: Batch) -> tuple[Any, Batch]:
        if objective in self.teacher.objectives:
            return batch.get(_OUTPUTS, {}), self.batch_for(objective, batch)
        outputs, batch = super().seen_by(objective, outputs, batch)
        return _with_vectors(outputs, LAYER_WEIGHTS, self.encoder.embedding_table), batch

    def batch_for(self, objective: Objective, batch: Batch) -> Batch:
        if objective not in self.teacher.objectives:
            return batch
        return beside(batch) or {name: ops.zeros((1, 1), dtype) for name, dtype in (
            ("masked_lm_ids", "int32"), ("masked_lm_weights", "float32"))}


def teacher_config(settings: TeacherSettings, config: Sizes) -> Sizes:
    """Returns the teacher's configuration with rows for the tokens of `config`, too."""
    if not settings.teacher:
        raise InputError("--teacher must be given, since this recipe learns from a pre-trained "
                         "model.")
    sizes: Any = checkpoints.read_config(settings.teacher)
    return dataclasses.replace(sizes, vocab_size=sizes.vocab_size + config.vocab_size)  # type: ignore


def _with_vectors(values, name, vectors):
    """Returns `values` with the `vectors` of tokens appended to the dict `name`, if it is there."""
    if name not in values:
        return values
    return {**values, name: {**values[name], _VECTORS: ops.reshape(vectors, (-1,))}}
