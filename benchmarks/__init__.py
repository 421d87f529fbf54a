"""The budgets, measured: ``python -m benchmarks [names…] [--quick]``."""
