"""Hooks that pytest must know before it looks into any folder, also in front of its workers."""

from fault_matrix import pytest_runtest_logreport, pytest_terminal_summary

__all__ = ["pytest_runtest_logreport", "pytest_terminal_summary"]
