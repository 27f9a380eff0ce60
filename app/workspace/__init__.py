"""What comes back: saved workspaces, recorded and interrupted runs."""
