"""The hands of one developer machine: worktrees, terminals, agents, and what is typed into them.

Hears `host.cmd` and says `host.fact`; serves the folders through which agents in our terminals speak. It judges nothing:
it does what an order says, once, or tells in one fact why not.

Everything that a killed pane-host must still know lies in `<state>/hands`:

    journal/    one file per order: its steps, before and after each, and what was said of it
    terminals/  one folder per terminal that we made: its record, its runner's files, and `pane/`, which its agent may write to
    archive/    the last output of ended terminals
    trash/      one file per removed worktree that can still be brought back
"""
