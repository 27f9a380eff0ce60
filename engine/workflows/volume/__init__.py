"""Whole volumes: planned as a whole, computed slice by slice, stored as they finish."""
