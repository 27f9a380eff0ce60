"""Reconstruction methods, one file each, and the pieces they share."""
