"""What was found, put in a better order: candidates are scored against the question, sorted, and cut off.

- `candidate`: `Candidate`, something that was found, with its score.
- `scorer`: the protocol: how well candidates fit a question, from 0 to 1.
- `reranker`: `Reranker`, which sorts by a scorer and drops what is not good enough.
- `keyword`, `embedding`, `model`: scorers: by words, by vectors, by asking a model.

Rules: a package of the band imports core and inference and none of its neighbours; `orchestrate.reranking` is
where chunks of retrievers become candidates, and candidates chunks. A score of this package is from 0 to 1,
and higher is always better; the score that a candidate came with is kept in its metadata.
"""
