"""Provenance of machine learning runs, recorded as it happens and stated in W3C PROV."""
