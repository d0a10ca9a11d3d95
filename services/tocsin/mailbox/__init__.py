"""mailbox: hears requests to mailboxes, what is recorded of Runs, and how panes stand; decides who must be told, and whether
that takes a wake; says what is true of each mailbox, hints for parked waits, and orders to type a pointer."""
