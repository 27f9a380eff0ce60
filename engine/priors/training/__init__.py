"""Training a prior: settings, data, loss, the loop and what it reports."""
