"""Questions are similar if they share rare word pieces: TF-IDF of 3 to 5 adjacent letters. Needs no model.

Pieces instead of words also match inflections and compounds, in any language that has letters. The
weights come from the corpus with which it is made, so an embedder of the same texts gives the same
vectors.
Source: Spärck Jones 1972, “A statistical interpretation of term specificity”, with sublinear term
frequencies.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from app.players.base import Generation
from app.society.embedders.base import Vectors, check_texts, unit_rows

MOST_TERMS = 4096  # the most frequent ones; a row takes four bytes for each
THRESHOLD = 0.55  # most pairs of shipped questions below it ask nearly the same


class TfidfEmbedder:
    """See the module. `corpus` has every text that will be embedded, or as many similar ones as there are.

    A text that shares no piece with the corpus has a row of zeros.
    """

    name = "tfidf"
    threshold = THRESHOLD

    def __init__(self, corpus: Sequence[str]) -> None:
        check_texts(corpus)
        self.calls: list[Generation] = []
        self._vectorizer = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True, max_features=MOST_TERMS, dtype=np.float32
        )
        self._is_empty = not any(map(str.strip, corpus))
        if not self._is_empty:
            self._vectorizer.fit(corpus)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        if self._is_empty or not texts:
            return np.zeros((len(texts), 1), dtype=np.float32)
        return unit_rows(self._vectorizer.transform(texts).toarray(), len(texts), self.name)
