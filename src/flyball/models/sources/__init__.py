"""Places that have model files. Each is a generator of the file's bytes, in order.

A place that cannot give them raises `SourceError` with the reason in one line; what is raised besides is the
caller's own (a full disk, an interruption).
"""
