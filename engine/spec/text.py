"""Text from outside - names of files, tags, what another program says - as it may be shown."""

from __future__ import annotations


def shown(text: object) -> str:
    r"""One line without anything that a terminal or a window obeys instead of showing it.

    Control, escape and bidirectional characters, and bytes of no alphabet, become ``\x1b`` and
    the like.
    """
    return "".join(
        sign
        if sign.isprintable()
        else sign.encode("unicode_escape", "surrogatepass").decode("ascii")
        for sign in str(text)
    )
