"""A tour of the real window, driven as a person would, with a picture of every step."""
