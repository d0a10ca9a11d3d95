"""How a service lives: clock, settings, logs, metrics, health, start and drain."""
