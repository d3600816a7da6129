"""Windows over a run of tokens that is longer than a sequence: each token is answered for once."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Window:
    """A part of the tokens.

    Attributes:
        start, end: what the network sees.
        first, last: what it answers for, from `first` to before `last`, within start and end.
    """

    start: int
    end: int
    first: int
    last: int


def cut_windows(first, last, low, high, width):
    """Cuts a run into windows that together answer for each of its tokens once.

    A run that fits is one window. Of a longer one every window answers for its middle half, so that
    each token is seen with what stands around it. Room that is left is filled with the tokens
    around the run, as many on either side as there are.

    Args:
        first, last: the run, from `first` to before `last`.
        low, high: the bounds of what may be seen: the run itself, or the document around it.
        width: the most tokens that a window sees.

    Yields:
        `Window`, in order.
    """
    step = width if last - first <= width else max(1, width // 2)
    for begin in range(first, last, step):
        end = min(begin + step, last)
        start = max(low, min(begin - (width - end + begin) // 2, high - width))
        yield Window(start, min(start + width, high), begin, end)
