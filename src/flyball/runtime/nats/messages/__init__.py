"""What travels on the wire: SemStreams' payloads in its envelope, and beside them exactly what flyball means.

    frame   the envelope, and how what it carries is read
    work    what model workers and tools workers are asked to do, and what they answer
    told    what a loop is told: that it is wanted, what came of its calls, signals, the time

Every message can be read and written by a component of SemStreams, which knows the envelope and the payload.
The key `flyball` beside them holds the same thing without loss (messages have parts that the payload has no
words for), and is what our own workers read. A message without it comes from somebody else, and is read from
its payload alone.
"""
