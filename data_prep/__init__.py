"""Jobs that turn text and task files into records."""

from bert_tf.signals import quiet_imports

quiet_imports()
