"""console: a window. It shows the list live to whoever has a session, says why, keeps a coarse picture of the day, and hands a person's commands on.

It decides nothing about agents or work: what it shows was said by others, what it is asked to do others accept or refuse.
"""
