"""Quantities that are read again and again, one source in one file."""
