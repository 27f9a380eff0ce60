"""Live curves and spectra of runs."""
