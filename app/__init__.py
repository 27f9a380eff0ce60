"""The Qt workstation. It shows and asks; it does no maths."""
