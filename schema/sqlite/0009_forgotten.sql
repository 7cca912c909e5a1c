-- Operational, not rebuilt: by which names what was forgotten went, so that a transcript which still holds it does not
-- bring it back. A digest is keyed with the salt: without this file it tells nothing of the name.
CREATE TABLE forgotten (
  digest BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- One row, from the first time on that something is forgotten or redacted.
CREATE TABLE forgetting (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  salt BLOB NOT NULL,
  project INTEGER NOT NULL, -- numbers up to these two were given, and are not given again
  session INTEGER NOT NULL,
  remains TEXT NOT NULL -- JSON list of what of the home is still to be cleaned: file, log, copies, graph
) STRICT;

-- Events of the file that were forgotten, and stayed out.
ALTER TABLE imports ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
