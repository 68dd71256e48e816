"""`./rook-dev soak`: many scripted agents, two mergers and a person under random failures, checked from outside.

`site` is the place, `plan` says from a seed what is done, `person` and `chaos` do it, `hand` is what agents run in
their turns, and `checks` judges what is left with plain git, SQLite and `/proc`.
"""
