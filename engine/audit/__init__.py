"""What is installed, held against what was tested, what is known to be unsafe, and licences."""
