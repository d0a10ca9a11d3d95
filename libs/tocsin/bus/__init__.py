"""How a message travels: the port (`bus`), and the port over NATS JetStream (`nats_bus`)."""
