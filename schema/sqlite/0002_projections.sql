-- Projections: what `memory.apply` computes from the ledger. `graphsvc rebuild` drops these tables and runs this file again.
-- Node numbers are event ids (sessions: keys of the sessions table). Times are UTC text.
CREATE TABLE session_state (
  session INTEGER PRIMARY KEY,
  host TEXT,
  title TEXT,
  cwd TEXT,
  parent TEXT, -- host id
  relation TEXT,
  started_at TEXT,
  last_at TEXT,
  last_event INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  isolated INTEGER NOT NULL
) STRICT;
CREATE INDEX session_by_parent ON session_state (parent) WHERE parent IS NOT NULL;

CREATE TABLE membership (
  session INTEGER NOT NULL,
  event INTEGER NOT NULL,
  PRIMARY KEY (session, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX membership_by_event ON membership (event);

-- Events only their sessions may see. A row leaves when the event is published.
CREATE TABLE hidden (
  event INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE tool_calls (
  session INTEGER NOT NULL,
  tool_use_id TEXT NOT NULL,
  event INTEGER NOT NULL,
  result INTEGER,
  PRIMARY KEY (session, tool_use_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_calls_by_event ON tool_calls (event);

CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  type TEXT NOT NULL,
  project INTEGER NOT NULL,
  session INTEGER NOT NULL,
  status TEXT NOT NULL,
  text TEXT NOT NULL,
  scope TEXT NOT NULL,
  key TEXT,
  basis TEXT,
  kind TEXT, -- of feedback
  evidence TEXT NOT NULL, -- JSON list of event ids
  superseded_by INTEGER,
  promoted_to INTEGER,
  at TEXT NOT NULL,
  changed_event INTEGER NOT NULL,
  changed_ts TEXT
) STRICT;
CREATE INDEX records_by_project ON records (project, type, status, at);
CREATE INDEX records_by_session ON records (session, type, status);
CREATE INDEX records_by_successor ON records (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX records_by_key ON records (type, key, session);
CREATE INDEX records_of_all ON records (type, at) WHERE scope = 'global';
CREATE INDEX records_by_change ON records (changed_event);

-- Every status a record has had, and the event that gave it.
CREATE TABLE record_states (
  record INTEGER NOT NULL,
  event INTEGER NOT NULL,
  at TEXT NOT NULL,
  status TEXT NOT NULL,
  PRIMARY KEY (record, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX states_by_event ON record_states (event);

-- The protocol's names for the same rows (§3).
CREATE VIEW goals AS SELECT * FROM records WHERE type = 'goal';
CREATE VIEW decisions AS SELECT * FROM records WHERE type = 'decision';
CREATE VIEW feedback AS SELECT * FROM records WHERE type = 'feedback';
CREATE VIEW pending_candidates AS SELECT * FROM records WHERE type = 'candidate';
CREATE VIEW todos AS SELECT * FROM records WHERE type = 'todo';

CREATE TABLE knowledge_assets (
  id INTEGER PRIMARY KEY,
  project INTEGER NOT NULL,
  path TEXT NOT NULL,
  UNIQUE (project, path)
) STRICT;

CREATE TABLE asset_versions (
  event INTEGER PRIMARY KEY,
  asset INTEGER NOT NULL,
  project INTEGER NOT NULL,
  session INTEGER NOT NULL,
  call INTEGER,
  result INTEGER,
  at TEXT NOT NULL,
  kind TEXT NOT NULL, -- of the asset; others than its session know it from the first version that they may see
  title TEXT NOT NULL,
  content BLOB, -- zlib; NULL: partial
  hash TEXT,
  ref TEXT,
  ref_event INTEGER
) STRICT;
CREATE INDEX versions_by_asset ON asset_versions (asset, at, event);
CREATE INDEX versions_by_number ON asset_versions (asset); -- an index ends with the row's number
CREATE INDEX versions_by_session ON asset_versions (session, asset);
CREATE INDEX versions_open ON asset_versions (project, at) WHERE ref IS NULL;
CREATE INDEX versions_by_call ON asset_versions (call);
CREATE INDEX versions_by_result ON asset_versions (result);
CREATE INDEX versions_by_ref ON asset_versions (ref_event);

CREATE TABLE mentions (
  project INTEGER NOT NULL,
  path TEXT NOT NULL,
  src_type TEXT NOT NULL,
  src INTEGER NOT NULL,
  rule TEXT NOT NULL,
  event INTEGER NOT NULL,
  at TEXT NOT NULL,
  live INTEGER NOT NULL,
  PRIMARY KEY (project, path, src_type, src, rule)
) STRICT, WITHOUT ROWID;
CREATE INDEX mentions_by_src ON mentions (src_type, src);

CREATE TABLE lineage_edges (
  type TEXT NOT NULL,
  src_type TEXT NOT NULL,
  src INTEGER NOT NULL,
  dst_type TEXT NOT NULL,
  dst INTEGER NOT NULL,
  rule TEXT NOT NULL,
  confidence TEXT NOT NULL,
  begin_event INTEGER NOT NULL,
  begin_at TEXT NOT NULL,
  end_event INTEGER,
  end_at TEXT,
  changed_event INTEGER NOT NULL, -- the event that wrote this row
  PRIMARY KEY (src_type, src, type, dst_type, dst)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_by_dst ON lineage_edges (dst_type, dst, type);
CREATE INDEX edges_by_change ON lineage_edges (changed_event);

-- What an edge was before it was drawn again: how things stood then is still to be told.
CREATE TABLE past_edges (
  type TEXT NOT NULL,
  src_type TEXT NOT NULL,
  src INTEGER NOT NULL,
  dst_type TEXT NOT NULL,
  dst INTEGER NOT NULL,
  rule TEXT NOT NULL,
  confidence TEXT NOT NULL,
  begin_event INTEGER NOT NULL,
  begin_at TEXT NOT NULL,
  end_event INTEGER,
  end_at TEXT,
  changed_event INTEGER NOT NULL,
  PRIMARY KEY (src_type, src, type, dst_type, dst, begin_event)
) STRICT, WITHOUT ROWID;
CREATE INDEX past_edges_by_dst ON past_edges (dst_type, dst, type);
CREATE INDEX past_edges_by_change ON past_edges (changed_event);
CREATE TRIGGER edge_drawn_again AFTER UPDATE ON lineage_edges WHEN NEW.begin_event <> OLD.begin_event BEGIN
  -- Whoever draws it says what to do about conflicts here, too; and an edge may come back to where it began once.
  DELETE FROM past_edges WHERE src_type = OLD.src_type AND src = OLD.src AND type = OLD.type
    AND dst_type = OLD.dst_type AND dst = OLD.dst AND begin_event = OLD.begin_event;
  INSERT INTO past_edges VALUES (OLD.type, OLD.src_type, OLD.src, OLD.dst_type, OLD.dst, OLD.rule,
    OLD.confidence, OLD.begin_event, OLD.begin_at,
    -- One that stood, for its own session, ends where the one that all see takes its place.
    COALESCE(OLD.end_event, NEW.changed_event), COALESCE(OLD.end_at, MAX(OLD.begin_at, NEW.begin_at)),
    OLD.changed_event);
END;

-- The events that drew or ended an edge.
CREATE TABLE edge_events (
  event INTEGER PRIMARY KEY
) STRICT;
CREATE TRIGGER edge_drawn AFTER INSERT ON lineage_edges BEGIN
  INSERT INTO edge_events SELECT NEW.changed_event
  WHERE NOT EXISTS (SELECT 1 FROM edge_events WHERE event = NEW.changed_event);
END;
CREATE TRIGGER edge_changed AFTER UPDATE ON lineage_edges BEGIN
  INSERT INTO edge_events SELECT NEW.changed_event
  WHERE NOT EXISTS (SELECT 1 FROM edge_events WHERE event = NEW.changed_event);
END;

CREATE TABLE thread_meta (
  session INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;
