"""Plain values that say what is wanted and what went wrong; nothing here computes."""
