"""release-accountant: hears requests, Runs and what hosts observed; decides who owns each terminal and whether it may go; says custody.

What is to be closed or moved is told to the hosts, again while they are silent; only their proof makes a terminal released.
"""
