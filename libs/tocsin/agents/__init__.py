"""One file per coding agent: its hook vocabulary, what it can do, how its hooks are installed, and what its titles say."""
