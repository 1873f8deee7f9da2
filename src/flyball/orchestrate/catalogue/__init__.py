"""The catalogue: which loops a journal holds, searched, page by page.

    query               LoopQuery: which loops are wanted; LoopPage: what was found
    cursor              where a page ended, in a form that can be handed out
    remembered          what is kept in mind, within bounds
    catalogue           Catalogue

Guarantees:
- The newest first. A page goes on where the last one ended: whatever begins or grows meanwhile, nothing comes
  twice, and nothing that was there is left out.
- What is found is what one would find by looking at every loop's summary (`projections.summary`), as it
  stands when the page is made.
- One call looks at a bounded number of loops. A page may therefore be short, or empty, and still have a
  `next`: only one without it is the last.
- A loop is read once. One that has grown is gone on with where it was left, as long as that is in mind; how
  one stands that is not over is worked out each time. What is kept in mind is bounded.
- Nothing is written; whoever makes two catalogues of one journal finds the same in both.
"""

from flyball.orchestrate.catalogue.catalogue import Catalogue
from flyball.orchestrate.catalogue.query import LoopPage, LoopQuery

__all__ = ["Catalogue", "LoopPage", "LoopQuery"]
