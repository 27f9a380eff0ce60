"""The experiments of the paper, as definitions and one runner."""
