"""What is seen of runs from outside: what happens in them, and what they cost.

- `pricing`: what a model's tokens cost, and what a call comes to.
- `prices`: where a price is found: in a table of one's own, or in genai-prices' (`public_prices`).
- `run_cost`: a cost, by model; one that is not known says so.
- `cost`: the tracker that is put onto an agent, and an estimate without one.
- `metering`: how a tracker hears of the model calls that are made in its process.
- `events`: what is told of a run as it happens; `watcher`: whoever is told.
- `observer`: the watcher that feeds what pagantic has for it, each in memory and as a no-op: `event_log`
  (what happened), `tracer` (spans), `metrics` (numbers; `counting` says which), `cost_recorder` (costs).
- `log_events`: what is told of runs, as a log has it, and the `timeline` given back from a log alone.
- `genai`, `genai_content`, `spans`: what is told of runs in the words of OpenTelemetry's conventions;
  `telemetry`: the observer that speaks to it, by the recorders of `otel` (which needs the extra `otel`).
- `hooks`: functions to call; `bus`: publish and subscribe; two kinds of watchers.
- `trace`: a run step by step, as data; `tracing`: how it is made; `trace_text`: for people to read.
- `exporters`: where traces go, and the feature that has them made.

Rules: a package of the band imports core and inference and none of its neighbours. What is here watches, and
decides nothing about a loop. Amounts are exact decimals: no float is ever added up. A price that is not known
is never taken for nothing: it makes what it is part of unknown. Nothing is fetched from anywhere.
"""
