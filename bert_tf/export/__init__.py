"""Models for other runtimes: TensorFlow Serving (text or ids in), ONNX, LiteRT. Shapes: B batch, S
sequence. A model is a `BertEncoder` or a `Learner` of one objective."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "answer_model": ["AnswerModel"],
    "ids_model": ["LIBRARY_INPUTS", "GenerationModel", "IdsModel", "answers", "takes_choices"],
    "saving": ["check_onnx", "check_version", "quiet", "save_lite", "save_model", "save_onnx"],
    "text_model": ["ChoiceModel", "MaskModel", "TaggerModel", "TextModel"],
})
