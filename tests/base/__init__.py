"""Tests of `rookery.base`."""
