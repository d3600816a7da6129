#!/usr/bin/env bash
# tfrecord 1.14.6: where a feature of a TFRecord holds several byte strings, the zero bytes at their ends are lost.
#
# The package reads and writes TFRecord files without TensorFlow, for PyTorch or for a look at them. Arrays are stored
# as bytes, as with tf.io.serialize_tensor or tobytes: for each sentence of an example its padding mask in uint8,
# its vector in float32, its token ids. One value in a feature comes back as bytes, whole. Two or more come back as a
# NumPy array of the type S, which takes zeros at the end for padding and cuts them off. So a mask of 6 places has 3,
# a vector whose last number is 0 is one number short, and a mask of zeros is empty. Nothing is said: the file is
# right, as the bytes in it show. Token ids in int32 end in zeros nearly always, and numpy.frombuffer refuses what is
# left of them.
#
# Store one value for each feature ("mask_0", "mask_1"), or fill each value up to the known length with b"\0". Seen
# in November 2026 with Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tfrecord==1.14.6 numpy==2.4.6 protobuf==7.36.2
"$folder/venv/bin/python" - "$folder/examples.tfrecord" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
from tfrecord import TFRecordWriter, example_pb2, tfrecord_loader

print("tfrecord", version("tfrecord"), "numpy", version("numpy"))
masks = [np.array(mask, "uint8") for mask in ([1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0])]
vectors = [np.array(vector, "float32") for vector in ([0.5, 0.25, 0.25], [1, 0, 0], [0.5, 0.5, 0])]
writer = TFRecordWriter(sys.argv[1])
writer.write({"masks": ([mask.tobytes() for mask in masks], "byte"),
              "vectors": ([vector.tobytes() for vector in vectors], "byte"),
              "first_mask": (masks[0].tobytes(), "byte")})
writer.close()
example, = tfrecord_loader(sys.argv[1], None, {"masks": "byte", "vectors": "byte", "first_mask": "byte"})
read_masks = [np.frombuffer(bytes(mask), "uint8").tolist() for mask in example["masks"]]
read_vectors = [np.frombuffer(bytes(vector), "float32").tolist() for vector in example["vectors"]]
for name, before, after in (("masks", masks, read_masks), ("vectors", vectors, read_vectors)):
    for one, other in zip(before, after):
        print(f"{name:<8} written {one.tolist()}, read {other}")
assert read_masks == [[1, 1, 1], [1, 1, 1, 1, 1], []], "the masks are otherwise"
assert read_vectors == [[0.5, 0.25, 0.25], [1.0], [0.5, 0.5]], "the vectors are otherwise"
assert bytes(example["first_mask"]) == masks[0].tobytes(), "a single value is cut, too"

with open(sys.argv[1], "rb") as file:
    record = file.read()[12:-4]                # without the record's length and checksums
in_file = example_pb2.Example.FromString(record).features.feature["masks"].bytes_list.value
assert [list(mask) for mask in in_file] == [mask.tolist() for mask in masks], "the file is wrong, too"
PYTHON
echo "as seen"
