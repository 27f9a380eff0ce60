"""DICOM images."""
