"""Hours of random work with faults from outside: whether anything is lost, or leaks."""
