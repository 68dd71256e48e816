"""Tests of the rules that resolve conflicts, and of their replay."""
