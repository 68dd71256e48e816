"""Benchmarks: every figure beside its baseline, taken in the same run. `python -m bench` prints them all."""
