"""Opening data and browsing them: files, folders, drops, demos, series and slices."""
