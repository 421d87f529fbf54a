"""What lies here beside the tests is run by them, never imported by pytest."""

from __future__ import annotations

collect_ignore = ["documents", "stand_ins"]
