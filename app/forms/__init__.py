"""Forms made from settings classes, and the pictures that go with an acquisition."""
