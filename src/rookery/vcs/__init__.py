"""Version control: git and jj behind one Protocol, both through their command line."""
