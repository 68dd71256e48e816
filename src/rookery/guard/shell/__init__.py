"""Shell commands, parsed and judged word by word."""
