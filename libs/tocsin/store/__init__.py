"""What Redis (or Valkey) holds: the keys, and writes that an older holder or another life of the store cannot make."""
