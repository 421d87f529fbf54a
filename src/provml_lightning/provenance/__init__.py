"""The W3C PROV model of a run and its document."""
