"""One file per command; each has ``add_options(parser)`` and ``run(options) -> exit code``."""
