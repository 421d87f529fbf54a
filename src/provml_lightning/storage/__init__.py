"""The files of a run: where they lie and how they are written."""
