"""The decisions of custody: its life, who holds a worker and why, what is still owed, what disagrees. No I/O, no clock, no chance."""
