"""The command line of each agent: one file per agent, `plan(request)` in each."""
