"""What the HTTP API costs on top of `System.handle`, how many may follow loops, how soon tokens arrive."""
