"""Sessions and turns: their tables, states, journals and logs."""
