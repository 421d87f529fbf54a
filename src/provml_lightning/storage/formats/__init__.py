"""Metric files, one format in one file, writer and reader together."""
