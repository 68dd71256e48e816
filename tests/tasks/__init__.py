"""Tests of `rookery.tasks`."""
