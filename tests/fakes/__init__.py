"""Stand-ins for hardware that a test machine does not have, with scripted physics."""
