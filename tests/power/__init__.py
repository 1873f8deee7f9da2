"""What happens when machines lose their power: `make power-loss`, which needs root."""
