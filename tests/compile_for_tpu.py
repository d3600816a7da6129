"""Compiles a whole training step for a TPU v5e, on a machine without one.

    python tests/compile_for_tpu.py write /tmp/step.hlo         # with bert_tf
    python tests/compile_for_tpu.py compile /tmp/step.hlo       # with jax and libtpu, no TensorFlow

The first writes the step (forward, backward, clipping, AdamW; bfloat16) as XLA's HLO; the second
has libtpu's compiler turn it into a TPU program, and prints the memory that it takes. That shows
that every operation and shape is one that a TPU can do; nothing is run.
"""

import os
import sys
import time


def write(path, preset="tiny", batch_size=32, length=128, predictions=20):
    import keras
    import tensorflow as tf

    import bert_tf
    from bert_tf.training.trainer import Trainer

    policy = "mixed_bfloat16"
    config = bert_tf.EncoderConfig.preset(preset)
    learner = bert_tf.Learner(
        bert_tf.BertEncoder(config, dtype=policy),
        [bert_tf.MaskedLM(config, dtype=policy), bert_tf.SentencePrediction(config, dtype=policy)])
    rate = bert_tf.WarmupLinearDecay(1e-4, 100, 10)
    trainer = Trainer(learner, bert_tf.AdamWeightDecay(rate), tf.distribute.get_strategy())
    sizes = {"input_ids": length, "input_mask": length, "segment_ids": length,
             "masked_lm_positions": predictions, "masked_lm_ids": predictions,
             "masked_lm_weights": predictions, "next_sentence_labels": 1}
    batch = {name: tf.zeros([batch_size, size],
                            tf.float32 if name.endswith("weights") else tf.int32)
             for name, size in sizes.items()}

    @tf.function(jit_compile=True, autograph=False)
    def step(features, number):
        return trainer.replica.step(features, number, tf.constant(1.0))

    text = step.experimental_get_compiler_ir(batch, tf.constant(0, tf.int64))(stage="hlo")
    with open(path, "w", encoding="utf-8") as file:
        # The translation below knows no copy; to the compiler a reshape to the same shape is one.
        file.write(text.replace(" copy(", " reshape("))
    print(f"keras {keras.__version__}: {len(text):,} characters of HLO in {path}")


def compile_(path):
    os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", TPU_WORKER_ID="0",
                      TPU_ACCELERATOR_TYPE="v5litepod-4", TPU_WORKER_HOSTNAMES="localhost")
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax.experimental import topologies
    from jaxlib import _hlo, _jax
    from jaxlib.mlir import ir

    chip = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices[0]
    with open(path, encoding="utf-8") as file:
        module = _hlo.hlo_module_from_text(file.read())
    text = _jax.mlir.xla_computation_to_mlir_module(
        _hlo.XlaComputation(module.as_serialized_hlo_module_proto()))
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    start = time.monotonic()
    with mlir.make_ir_context():
        parsed = ir.Module.parse(text)
    devices = xla_client.DeviceList((chip,))
    try:
        program = chip.client.compile(parsed, devices, options)
    except TypeError:
        program = chip.client.compile(mlir.module_to_bytecode(parsed), devices, options)
    print(f"compiled for TPU v5e in {time.monotonic() - start:.0f} s")
    print(program.get_compiled_memory_stats())


if __name__ == "__main__":
    {"write": write, "compile": compile_}[sys.argv[1]](sys.argv[2])
