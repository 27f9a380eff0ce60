"""Where a reconstruction is measured and where it is guessed, and whether it can be made again."""
