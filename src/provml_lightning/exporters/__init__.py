"""A finished run in other forms: graph, crate, card, report."""
