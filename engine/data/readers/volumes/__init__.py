"""Volumes and pictures that are not DICOM."""
