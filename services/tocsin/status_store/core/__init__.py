"""Which pane an event belongs to, and what it makes of it."""
