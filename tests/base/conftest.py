"""Fixtures for tests of real processes."""

from __future__ import annotations

from processes import mark as mark
