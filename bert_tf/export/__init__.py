"""Models for other runtimes: TensorFlow Serving (text or ids in), ONNX, LiteRT.

Shapes: B batch, S sequence. A model is a `BertEncoder` or a `Learner` of one objective.
"""
