"""Every word that services say to each other: ids, messages, subjects and refusals. Pure: no I/O, no clock."""
