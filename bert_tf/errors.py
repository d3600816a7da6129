"""The one kind of error that the user can fix."""


class InputError(ValueError):
    """A bad file, line, flag, tensor or configuration.

    The message is one sentence that names what is wrong and says what to do. Scripts print it
    without a traceback and exit with status 1; library users may catch it as a ValueError.
    """
