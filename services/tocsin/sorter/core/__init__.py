"""The decisions of the order: classes, moments, names, places, reasons, the bell. No I/O, no clock, no chance."""
