"""Opened inputs: readers of every format, and what is known of what they read."""
