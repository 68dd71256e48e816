"""The process that serves a project: it runs operations and answers hooks for every caller, a thread each."""
