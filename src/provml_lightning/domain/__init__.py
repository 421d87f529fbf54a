"""Immutable values that all other packages speak in; standard library only."""
