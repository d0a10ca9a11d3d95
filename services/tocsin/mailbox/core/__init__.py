"""Decisions of mailbox: what a mailbox holds, what a Delivery is, who is woken, by what and how often."""
