"""What speaks the protocol, through the official SDK. Loaded with the first connection, and only then."""
