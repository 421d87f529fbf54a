"""Lightning callbacks that measure a training and follow its lineage."""
