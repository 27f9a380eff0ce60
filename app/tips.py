"""Tool tips with words from files: shown as they are, never as markup.

Qt takes a tip for HTML when it looks like it, and would then load the pictures that it names,
from other computers too.
"""

from __future__ import annotations

import html


def plain_tip(words: str) -> str:
    """The words for `setToolTip`; only what Qt would misread is changed."""
    if "<" not in words and "&lt;" not in words:
        return words
    return f"<p>{html.escape(words)}</p>".replace("\n", "<br>")
