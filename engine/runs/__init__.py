"""From a job to a problem, and a reconstruction as a generator that can be stopped and resumed."""
