"""How the window is divided: rails that fold, three layouts, a window for the images alone."""
