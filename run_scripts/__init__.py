"""Programs that train, evaluate, convert, export and measure."""

from bert_tf.signals import quiet_imports

quiet_imports()
