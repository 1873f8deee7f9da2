"""What is seen of runs from outside: so far, what they cost.

- `pricing`: what a model's tokens cost, and what a call comes to.
- `prices`: where a price is found: in a table of one's own, or in genai-prices' (`public_prices`).
- `run_cost`: a cost, by model; one that is not known says so.
- `cost`: the tracker that is put onto an agent, and an estimate without one.
- `metering`: how a tracker hears of the model calls that are made in its process.

Rules: a package of the band imports core and inference and none of its neighbours. What is here watches, and
decides nothing about a loop. Amounts are exact decimals: no float is ever added up. A price that is not known
is never taken for nothing: it makes what it is part of unknown. Nothing is fetched from anywhere.
"""
