"""console: a window. It shows the list live to whoever has a session, says why, keeps a coarse picture of the day, and hands a person's commands on.

It decides whom to tell of what needs them, and when. About agents and work it decides nothing: what it shows was said by others, what it
is asked to do others accept or refuse.
"""
