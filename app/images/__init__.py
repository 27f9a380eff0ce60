"""The image panes: what is shown, how it is shown, and what is measured on it."""
