"""What a model call over HTTP costs, beside bare aiohttp and beside frameworks on the vendors' clients."""
