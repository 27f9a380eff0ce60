"""K-space of many programs."""
