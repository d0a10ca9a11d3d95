"""Decisions of hook-ingest: may a body be read, and what does it report? No I/O, no clock."""
