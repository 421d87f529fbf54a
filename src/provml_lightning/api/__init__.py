"""The calls that users make on the current run."""
