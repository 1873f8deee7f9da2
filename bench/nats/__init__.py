"""How fast loops on NATS are, beside a raw client on the same server, and whether they survive anything.

command     `make bench-nats`: one server, the floor and flyball in turns, and what it prints
floor       consume, publish, acknowledge: nats-py alone, in processes of its own
speed       loops of five tool calls, carried on by worker processes: journal events a second
work        the agent that is measured
worker      one process of workers; children: processes that are told things, and end with the command
usage       what processes and the machine used: CPU time and memory, from /proc
paused      a great many loops that wait, and how soon one of them goes on
table       what is printed
partition, partition_table      what one partition takes of everything: `--partition`
nodes       servers for that, one or a cluster; elections: how long a killed leader is missed
"""
