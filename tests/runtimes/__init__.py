"""Tests of runtimes: the contract that all share, and what is each one's own."""
