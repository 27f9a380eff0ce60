"""Readers, writers and phantoms."""
