"""Tests of `rookery.events`."""
