"""Jobs that turn text and task files into records."""

import signal
import sys
import threading


def quiet_imports() -> None:
    """Makes Ctrl-C end a program without a traceback while the program is still importing.

    Packages of programs call this before anything else. It is not in the library, whose import
    takes long enough to be interrupted. It changes nothing for Python users of such a package.
    `bert_tf.signals` serves the rest of a program's life.
    """
    program = "".join(sys.argv[:1]).rpartition("/")[2]
    if (program == "-m" or program.startswith("bert-")) and (
            threading.current_thread() is threading.main_thread()):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


quiet_imports()
