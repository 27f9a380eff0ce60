"""Forward operators."""
