"""The console's decisions: sessions, what a viewer is sent next, the picture of the day. Pure."""
