"""Runtimes: adapters for the programs that agents run on, behind one Protocol."""
