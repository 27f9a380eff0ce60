"""Whole volumes in the workstation: computed slice by slice, looked at in three directions."""
