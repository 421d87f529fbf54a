"""Stands in for torchvision, which is no dependency: the few names that the documents use."""

from __future__ import annotations
