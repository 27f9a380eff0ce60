"""Writing results, by suffix, each file beside and then renamed."""

from engine.export.outputs import OUTPUT_SUFFIXES, Result, check_outputs, write_outputs

__all__ = ["OUTPUT_SUFFIXES", "Result", "check_outputs", "write_outputs"]
