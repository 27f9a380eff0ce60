"""Runs in the background: the worker, what it leaves, and the controls around it."""
