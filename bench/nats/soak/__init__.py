"""`make soak`: loops on NATS while workers and servers are killed at random, and what must still hold.

command     the command: starts it all, shows how far it is, prints what came of it
work        the agent: five tool calls, each of which writes down that it physically runs
worker      one process of workers
crowd       the processes, which can be killed and come again
trouble     who is killed, and when: the same for the same seed
growth      whether memory and consumers stay as they are
verdict     what must hold, from the journals and from what the tools wrote down
"""
