-- Operational, not rebuilt: what was imported, and what could not be read of it.
CREATE TABLE imports (
  path TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  format TEXT NOT NULL,
  records INTEGER NOT NULL,
  events INTEGER NOT NULL,
  sessions TEXT NOT NULL, -- JSON list of session ids
  imported_at TEXT NOT NULL
) STRICT;

CREATE TABLE gaps (
  path TEXT NOT NULL,
  line INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (path, line)
) STRICT, WITHOUT ROWID;
