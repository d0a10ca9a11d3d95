"""Hears hook events, titles and sightings; decides in which state each pane is; says `pane.status`.

One is active for all panes, because hooks, titles and keys of a pane meet here and have an order; others stand by.
"""
