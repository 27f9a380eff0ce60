"""HDF5 in all its dialects."""
