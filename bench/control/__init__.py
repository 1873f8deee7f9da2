"""Does a model choose the right tool, and read the right facts out of a text? README.md says how to read it.

tool_choice.toml, toolboxes.toml, extraction.toml      the tasks, written before anything was tuned
tasks       the tasks as typed structs, and how they are read from the files
halves      the rule by which half of the tasks are held
reading     what a model said as calls or as a value, strictly or repaired; whether it is valid
scoring     whether it is right: pure functions
methods     the ways of asking that are compared: plain, repair, grammar
results     replies on disk, so that a run that was broken off goes on
tally       counts, shares, intervals
report      what is printed
command     the command line; run.py starts it
"""
