"""Tests of landing, with real git, real gates and real agents."""
