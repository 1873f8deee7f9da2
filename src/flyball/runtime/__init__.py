"""What outlives a process: journals on disk and on a cluster.

- `sqlite`: many loops in one file, for one machine and any number of its processes.
- `nats`: loops in JetStream, for any number of machines.

Rules:
- a package here implements seams that `orchestrate` owns, and holds no policy of its own: what a loop does is
  decided by its machine, whatever its journal is kept in;
- each says what "durable" means there, and `flyball.testing.conformance` is run over it;
- nothing here is imported unless it is asked for by name.
"""
