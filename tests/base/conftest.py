"""Fixtures for tests of real processes."""

from __future__ import annotations

from process_tools import mark as mark
