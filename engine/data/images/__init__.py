"""What images need before they can be reconstructed again."""
