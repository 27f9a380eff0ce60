"""The experiments of the paper as a page of the workstation."""
