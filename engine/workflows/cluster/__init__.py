"""A volume's reconstruction by several processes, here or on other machines (Dask)."""
