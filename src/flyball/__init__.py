"""flyball."""
