"""DICOM-CT-PD projections."""
