"""What leaves the window: files, reports, the clipboard."""
