"""Writing, locking and finding files safely; records, presets and where they are kept."""
