"""Packaged desktop builds: ``python -m installer package`` and ``smoke`` (see ``build``)."""
