-- The word index, a read model that follows the ledger by position. Contentless: rows are ids of events, texts are analysed
-- in Python. w: words, i: joined identifiers, p: filler that softens FTS5's length normalisation.
-- Isolated events are indexed in a table of their own, so that no rank and no count of others moves.
CREATE VIRTUAL TABLE words USING fts5 (w, i, p, content = '', tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE words_isolated USING fts5 (w, i, p, content = '', tokenize = 'porter unicode61');

CREATE TABLE read_models (
  name TEXT PRIMARY KEY,
  position INTEGER NOT NULL, -- the last event it holds
  version TEXT NOT NULL -- of the code that wrote it: another version means rebuild
) STRICT;
