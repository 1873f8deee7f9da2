"""What a model is told beyond what was said: knowledge that is looked up for a run, and kept after it.

Knowledge bases give text, and are told what to keep:

- `knowledge_base`: the protocol: what can be asked, and told.
- `knowledge`: `Knowledge`, which is put onto an agent and says when a knowledge base or a context provider is
  asked, and where what it knows goes.
- `static`: a knowledge base that always says the same, and records what it is told: for tests.
- `sqlite_knowledge`: one that finds notes by their words, in a file or in memory.

Retrievers give chunks, with their sources and scores:

- `chunk`: `Chunk`, and what makes two of them the same.
- `chunking`: documents cut into chunks: text, Markdown, code, folders of files.
- `retriever`: the protocols: `Retriever`, which finds, and `Index`, which is told what there is to find.
- `in_memory`, `sqlite_retriever`, `embedding_retriever` (with `vectors`), `hybrid`: those that there are.
- `refreshing`: an index brought to what a folder has now.
- `builder`, `policy`: what was found as a message, and how it is told.
- `confidence`: how sure one may be of what was found.

Below both: `sqlite_file`, a file that many use at once, with indexes of words; `words`, a question as a
search that no text can break out of.

Rules: a package of the band imports core and inference and none of its neighbours. What is found is text for
the model and nothing else. A question is anybody's text: it never becomes SQL, nor a search's syntax. What
can be asked with a question alone is a knowledge base or a provider; a retriever is also told how much is
wanted.
"""
