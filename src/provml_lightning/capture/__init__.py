"""Facts that are taken once: environment, source, artifacts, models."""
