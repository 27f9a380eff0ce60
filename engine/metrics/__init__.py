"""Named metric profiles."""
