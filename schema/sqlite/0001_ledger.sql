-- The ledger: events and their bodies, append-only by trigger. Everything else can be computed from it.
-- Project keys and session ids are dictionaries of the ledger and as immutable as the events that point at them.
CREATE TABLE projects (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  host_id TEXT NOT NULL UNIQUE,
  project INTEGER NOT NULL REFERENCES projects (id)
) STRICT;
CREATE INDEX sessions_by_project ON sessions (project);

-- AUTOINCREMENT: a position is never reused, not even after `forget`.
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  project INTEGER NOT NULL REFERENCES projects (id),
  session INTEGER NOT NULL REFERENCES sessions (id),
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  origin TEXT NOT NULL,
  ts TEXT,
  at TEXT NOT NULL,
  received_at TEXT NOT NULL,
  actor TEXT,
  body BLOB, -- NULL: the body stands in `bodies`
  meta TEXT, -- NULL: the meta stands in `bodies`
  isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  UNIQUE (project, origin),
  UNIQUE (session, seq)
) STRICT;
CREATE INDEX events_in_time ON events (at, id);
CREATE INDEX events_by_time ON events (project, at, id);
CREATE INDEX events_by_kind ON events (project, kind, at, id);
CREATE INDEX events_by_session_time ON events (session, at, id);
-- What is looked up for every event of a session, however long it is.
CREATE INDEX events_switches ON events (session, at, id) WHERE kind = 'isolation';
CREATE INDEX events_checkpoints ON events (session, at, id) WHERE kind = 'compact_checkpoint';

-- Large bodies, zlib. One row holds the body and the meta of its event.
CREATE TABLE bodies (
  event INTEGER PRIMARY KEY REFERENCES events (id),
  body BLOB NOT NULL,
  meta BLOB NOT NULL
) STRICT;

CREATE TRIGGER events_keep BEFORE UPDATE ON events BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;
-- INSERT OR REPLACE would pass the two above.
CREATE TRIGGER events_once BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM events WHERE project = NEW.project AND origin = NEW.origin)
  OR EXISTS (SELECT 1 FROM events WHERE session = NEW.session AND seq = NEW.seq)
BEGIN SELECT RAISE (ABORT, 'events are append-only'); END;

CREATE TRIGGER bodies_keep BEFORE UPDATE ON bodies BEGIN SELECT RAISE (ABORT, 'bodies are append-only'); END;
CREATE TRIGGER bodies_stay BEFORE DELETE ON bodies BEGIN SELECT RAISE (ABORT, 'bodies are append-only'); END;
CREATE TRIGGER bodies_once BEFORE INSERT ON bodies WHEN EXISTS (SELECT 1 FROM bodies WHERE event = NEW.event)
BEGIN SELECT RAISE (ABORT, 'bodies are append-only'); END;

CREATE TRIGGER projects_keep BEFORE UPDATE ON projects BEGIN SELECT RAISE (ABORT, 'project keys are append-only'); END;
CREATE TRIGGER projects_stay BEFORE DELETE ON projects BEGIN SELECT RAISE (ABORT, 'project keys are append-only'); END;
CREATE TRIGGER projects_once BEFORE INSERT ON projects
WHEN EXISTS (SELECT 1 FROM projects WHERE id = NEW.id OR key = NEW.key)
BEGIN SELECT RAISE (ABORT, 'project keys are append-only'); END;

CREATE TRIGGER sessions_keep BEFORE UPDATE ON sessions BEGIN SELECT RAISE (ABORT, 'session ids are append-only'); END;
CREATE TRIGGER sessions_stay BEFORE DELETE ON sessions BEGIN SELECT RAISE (ABORT, 'session ids are append-only'); END;
CREATE TRIGGER sessions_once BEFORE INSERT ON sessions
WHEN EXISTS (SELECT 1 FROM sessions WHERE id = NEW.id OR host_id = NEW.host_id)
BEGIN SELECT RAISE (ABORT, 'session ids are append-only'); END;
