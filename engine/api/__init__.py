"""The engine for Python: what `import dualscope` shows."""
