"""The program that people, agents and hooks start: it hands its words to the project's daemon and shows the answer.

It starts cold at every call, so it imports nothing of Rookery but itself, and of Python only what is built in.
"""
