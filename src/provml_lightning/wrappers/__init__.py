"""Wrappers that track what is called inside them."""
