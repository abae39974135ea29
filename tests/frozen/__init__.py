"""A store with every feature, as it was when the format was frozen, and what must be read of it."""
