"""Sets Dualscope up on a fresh machine: ``python -m installer`` (see ``cli``)."""
