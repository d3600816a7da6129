"""Writes a fine-tuned model as integers of 2 to 8 bits, into a smaller file.

    bert-quantise-model --init_checkpoint=mrpc_q8bert --output=mrpc_int8

A model that was trained with --quantisation gives the same outputs from the file, bit for bit. The
flags --quantisation, --weight_bits and others (--helpfull) round any other model; without training,
such a model loses more accuracy. Use the new folder like any model's folder: as --init_checkpoint
of the fine-tuning commands and of bert-export-model, or with `bert_tf.Predictor`.

With --measure_sensitivity the command only chooses the bits of each layer, by the Hessian:
bert-quantise-model --measure_sensitivity --help.
"""

import dataclasses

from bert_tf import flags
from bert_tf.errors import InputError
from bert_tf.files import file_size, make_folder, real_path
from bert_tf.finetuning.model import QuantisationFlags
from bert_tf.flags import REQUIRED, option
from run_scripts import commands


@dataclasses.dataclass(kw_only=True)
class QuantiseFlags(QuantisationFlags):
    """The model, and where the integers go."""

    init_checkpoint: str = option(REQUIRED, "The --output_dir of a fine-tuning command.")
    output: str = option(REQUIRED, "The folder to write into; it must not be the folder of "
                                   "--init_checkpoint, or hold another model.")


def main(job: QuantiseFlags) -> None:
    """Reads the model and writes the integers."""
    if real_path(job.output) == real_path(job.init_checkpoint):
        raise InputError(f"--output is the folder of --init_checkpoint, {job.output}; name another "
                         "folder.")
    from bert_tf.checkpoints import weights_at
    from bert_tf.compression.integers import write_integers
    from bert_tf.model_card import write_card
    from bert_tf.opening import open_model
    # Other weights in the folder would be read as the model of the new task.json.
    if others := [file for form, file in weights_at(job.output).items() if form != "quantised"]:
        raise InputError(f"--output: {job.output} holds other weights, {others[0]}; name another "
                         "folder.")
    model = open_model(job.init_checkpoint, finetuned=True)
    config = job.quantised(model.config)
    if not config.quantisation:
        raise InputError(f"--init_checkpoint: {job.init_checkpoint} was not trained with "
                         "--quantisation; give --quantisation here, such as q8bert.")
    make_folder(job.output, "output")
    learner = dataclasses.replace(model, config=config).learner()
    model.saved.write(job.output)
    model.tokenizer.save(job.output)
    flags.keep(job, job.output)
    path = write_integers(job.output, learner)      # after what belongs to it
    floats = 4 * learner.count_params()
    size = file_size(path)
    told = f"{size:,} bytes, {size / floats:.1%} of what the weights take as floats"
    write_card(job.output, job.init_checkpoint, flags.command_line("bert-quantise-model", job),
               note=f"Its matrices are integers: {told}.")
    print(f"{path}: {told}", flush=True)


if __name__ == "__main__":
    commands.run("bert-quantise-model")
