"""Tests of `rookery.cli`."""
