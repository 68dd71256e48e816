"""The remote repository: the base follows its upstream, and is pushed there when a person says so."""
