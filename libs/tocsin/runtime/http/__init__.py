"""HTTP as every service of ours serves it: limits, the border against web pages, bearers. Whoever serves it brings its own routes."""
