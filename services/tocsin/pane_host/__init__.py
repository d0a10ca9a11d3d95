"""The hands and eyes of one developer machine.

Looks at tmux panes, processes, git worktrees, transcripts and the hook spool of this host, and says what it saw:
`pane.titled`, `pane.seen` and `worktree.known`. Hears `pane.status` of its own host, for transcripts and folders.
It decides nothing: facts only, and silence is never told as a fact.
"""
