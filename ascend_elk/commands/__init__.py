"""The commands: what a person asked for becomes calls, results become output."""
