"""What can be told from what was seen: no I/O, no clock, no chance."""
