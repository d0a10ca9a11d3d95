"""hook-ingest: hears agents' hooks over HTTP, decides whether one is well-formed and permitted, and says `hook.reported`.

It resolves nothing: which pane an event belongs to, and what it means for that pane, is status-store's to decide.
"""
