"""Priors: denoisers D(x; sigma) and what they know about themselves."""
