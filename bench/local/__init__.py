"""What a grammar costs: tokens per second of the embedded model with one and without, in turns.

Both sides read the same prompt and write about as many tokens, so that they differ in the grammar alone. The
figure of a side is its fastest round: what the work takes when nothing else is in the way.
"""
