"""The hands and eyes of one developer machine.

Looks at tmux panes, processes, git worktrees, transcripts and the hook spool of this host, and says what it saw:
`pane.titled`, `pane.seen` and `worktree.known`. Hears `pane.status` of its own host, for transcripts and folders.
Does what `host.cmd` orders (`hands/`): makes worktrees and terminals, starts agents, types pointers, ends trees, keeps and
trashes; and carries what panes ask to the services. It decides nothing: facts only, and silence is never told as a fact.
"""
