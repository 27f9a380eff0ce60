"""The library of runs: every run that was made, to find, open, go on with or delete."""
