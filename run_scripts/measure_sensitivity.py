"""Chooses the bits of each layer of a fine-tuned model, by the Hessian.

    bert-quantise-model --measure_sensitivity --init_checkpoint=mrpc --task=mrpc \\
        --data_dir=glue/MRPC --output_dir=mrpc_sensitivity --bits=2,4

For each layer of the encoder, the largest eigenvalue of the Hessian of the loss, in magnitude, is
found on random samples of the training file. The layers with the largest |mean| + standard
deviation get the second number of --bits. The command prints the flag --weight_bits for a
fine-tuning command with --quantisation=qbert (Q-BERT, arXiv:1909.05840).

results.json keeps the eigenvalues that were found. Run the same command again to compute only the
missing ones.
"""

import dataclasses
import functools
import typing

from bert_tf.config.quantisation import Quantisation
from bert_tf.errors import InputError, naming
from bert_tf.flags import REQUIRED, check, option
from bert_tf.kept import Kept
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.reporting import TimeLeft
from run_scripts import commands
from run_scripts.kept_results import open_results

# Flags that may change when a command resumes.
_FREE = ("measure_sensitivity", "bits", "sensitive_layers", "samples", "batch_size")

if typing.TYPE_CHECKING:
    from run_scripts.finetuning.scoring import ScoredSplit


@dataclasses.dataclass(kw_only=True)
class SensitivityFlags:
    """The model, the samples, and the bits."""

    init_checkpoint: str = option(REQUIRED, "The --output_dir of a fine-tuning command.")
    output_dir: str = option(REQUIRED, "The folder to write into.")
    measure_sensitivity: bool = option(True, "Choose the bits of each layer; no model is written.")
    bits: list[str] = option(
        ["2", "3"], "Bits for most layers, and bits for the most sensitive layers.")
    sensitive_layers: int = option(
        0, "Number of layers that get more bits; 0: half of them.", least=0)
    samples: int = option(10, "Number of samples from the training file.", least=1)
    examples: int = option(0, "Examples per sample; 0: a tenth of the file.", least=0)
    most_products: int = option(
        100, "Maximum number of Hessian-vector products for an eigenvalue.", least=1)
    batch_size: int = option(16, "Examples per batch.", least=1)
    random_seed: int = option(1, "Seed of the samples and of the initial vectors.", least=0)

    def few_and_many(self) -> tuple[int, int]:
        """Returns the two numbers of bits."""
        try:
            few, many = map(int, self.bits)
        except ValueError:
            raise InputError(f"--bits={','.join(self.bits)}: give two numbers, separated by a "
                             "comma.") from None
        with naming(f"--bits={few},{many}"):
            Quantisation(weight_bits=(few, many))
        return few, many


def measure(job: SensitivityFlags, split: "ScoredSplit", results: Kept) -> list[list[float]]:
    """The eigenvalues of each layer, on each sample, which `results` keeps."""
    import numpy as np
    import tensorflow as tf

    from bert_tf.compression import hessian
    learner = split.model.learner
    layers = learner.encoder.config.num_hidden_layers
    size = job.examples or max(1, split.records // 10)
    random = np.random.default_rng(job.random_seed)
    rows = [random.permutation(split.records)[:size] for _ in range(job.samples)]

    def eigenvalue(block: "hessian.LayerHessian", sample: "np.ndarray") -> float:
        parts = (sample[i:i + job.batch_size] for i in range(0, len(sample), job.batch_size))
        return block.eigenvalue(
            [{name: tf.constant(values) for name, values in split.batch(part).items()}
             for part in parts], seed=job.random_seed, most=job.most_products)

    progress = TimeLeft("eigenvalues", job.samples * layers)
    eigenvalues: list[list[float]] = []
    for layer in range(layers):
        block = hessian.LayerHessian(learner, layer)
        eigenvalues.append([])
        for number, sample in enumerate(progress.over(rows)):
            eigenvalues[-1].append(results.get("eigenvalues", str(layer), str(number), measure=(
                functools.partial(eigenvalue, block, sample))))
    return eigenvalues


def main(task_flags: TaskFlags, job: SensitivityFlags) -> None:
    """Measures and prints."""
    check(job)
    bits = job.few_and_many()
    from bert_tf.compression import hessian
    from run_scripts.finetuning.scoring import ScoredModel, contents_of
    split = ScoredModel(job.init_checkpoint, task_flags, job.output_dir, job.batch_size,
                        "init_checkpoint").split("train")
    results = open_results(job, _FREE, task_flags,
                           **contents_of(job.init_checkpoint, split, "init_checkpoint"))
    eigenvalues = measure(job, split, results)
    omegas = [hessian.sensitivity(values) for values in eigenvalues]
    chosen = hessian.choose_bits(omegas, bits, job.sensitive_layers or len(omegas) // 2)
    for layer, (values, omega, of_layer) in enumerate(zip(eigenvalues, omegas, chosen)):
        print(f"layer {layer + 1}: eigenvalues {', '.join(f'{value:.4g}' for value in values)}; "
              f"sensitivity {omega:.4g}; {of_layer} bits", flush=True)
    print(f"--quantisation=qbert --weight_bits={','.join(map(str, chosen))}", flush=True)


if __name__ == "__main__":
    commands.start(__name__)
