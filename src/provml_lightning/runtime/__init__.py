"""A run while it lives: who writes, who compiles, which one is current."""
