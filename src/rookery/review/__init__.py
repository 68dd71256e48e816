"""Work that was handed in, on its way to the base: looked at, approved, or sent back to an agent that is resumed."""
