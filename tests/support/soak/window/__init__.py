"""The window's part of the soak: random work in one window, for as long as it is asked for."""
