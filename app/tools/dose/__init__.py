"""How much of a scan is enough: one setting swept, images side by side, quality by dose."""
