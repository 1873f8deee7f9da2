"""flyball beside other frameworks, on the same workloads. `bench/README.md` says how to read the table.

frameworks          who is measured, and where its file stands
requirements/       what each peer's environment holds, pinned by hash
environments        makes these environments
<name>_peer         a framework on the workloads; imported in its own environment alone
worker              one framework on one workload, in a process of its own in that environment
rounds              starts the workers of a row and lets them take turns
rows                what is measured, each with its target
table, command      what is printed, and the command
"""
