"""What measures and what is measured: operators, geometry, units, noise, problems, phantoms."""
