"""The command `coret`: thin, every line of work is done elsewhere."""
