"""A folder of inputs as a page of the workstation."""
