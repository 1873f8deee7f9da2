"""How well retrievers find the section of this project's docs that answers a question."""
