"""What a region takes: partitions, workers and failures, simulated from what was measured. See README.md.

plan        what is simulated: the region, its load, what fails; and the costs that were measured
clock       what happens next: a heap, and processes that are generators
stations    what is waited for: cores, disks, a worker's one thread
cluster     nodes in zones, and streams on them: leaders, quorums, elections
post        messages to workers: given once, given again, at most so many under way
region      loops carried on by workers, and what must hold of their journals
report      what came of it; table, command: what is printed
"""
