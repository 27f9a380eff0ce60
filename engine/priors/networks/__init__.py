"""Networks that estimate noise-free images, each constructed from plain keyword arguments."""
