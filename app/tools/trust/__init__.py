"""Where a result is measured and where it is guessed, on the screen."""
