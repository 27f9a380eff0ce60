"""One module per kind of file; each turns a path and options into a Dataset."""
