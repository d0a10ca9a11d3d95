"""The HTTP routes, one file for each concern. Each has `routes(...)`, which makes a router."""
