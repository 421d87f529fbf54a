"""Loggers that a trainer is given: for Lightning and for itwinai."""
