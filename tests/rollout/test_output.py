"""What is drained from a policy process, also after its end."""

from __future__ import annotations

import os

from evotui.rollout.output import Output


def started(text: bytes) -> Output:
    output = Output(keep=100)
    os.write(output.for_child[0], text)
    output.start()
    return output


def test_what_was_printed_can_be_taken_after_both_ends_are_closed():
    output = started(b"last words")
    output._thread.join(10)
    assert not output._thread.is_alive()
    assert output.take() == (b"last words", b"")
    assert output.take() == (b"", b"")


def test_a_closed_end_is_never_read_again_though_its_number_is_used_anew():
    output = started(b"")
    output._thread.join(10)
    pipes = [os.pipe() for _ in range(8)]
    try:
        for _, end in pipes:
            os.write(end, b"somebody else's")
        assert output.take() == (b"", b"")
    finally:
        for fd in (fd for pipe in pipes for fd in pipe):
            os.close(fd)
