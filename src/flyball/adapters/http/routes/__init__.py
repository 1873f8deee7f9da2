"""The operations of the system's own API, by what they are about."""
