"""What the main window does, free of its widgets' layout."""
