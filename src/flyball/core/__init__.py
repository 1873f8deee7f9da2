"""The vocabulary that every layer speaks, and nothing that does anything.

Frozen msgspec structs: messages and parts, tools as data, settings, limits, usage, signals; the events that
journals are made of and the effects that loops owe; one tree of errors; ids and time; JSON Schemas.
`forms` reads and writes the JSON of pagantic, SemStreams and gollem.

Rules:
- no I/O, no event loop, no import from any other package of flyball;
- a struct is what is written: the same type in memory, in a journal and on a wire;
- what comes in from outside is made encodable once, here (`encodable`), and never fails later.
"""
