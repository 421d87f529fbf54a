"""The prov4ml verbs: each builds a record and hands it to the current run."""
