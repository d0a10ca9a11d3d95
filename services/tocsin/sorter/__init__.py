"""sorter: hears pane statuses and worktrees, decides in which order worktrees need a person, says the list, its changes and alarms.

One sorter of a workspace publishes, others stand by with the same order at hand.
"""
