"""Hears requests to Runs, what hosts observed and in which state panes are; decides which Task may start and how its Dispatch
ended; says what became true of each Run, and gives hosts their orders.

Any number may run: each decides on what the log says, and of two that write at once one decides again.
"""
