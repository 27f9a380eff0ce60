"""A folder of inputs to a folder of results and one table."""
