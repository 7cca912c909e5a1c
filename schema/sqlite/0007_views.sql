-- For people who prefer SQL: read-only views of what all may see, with the ids that every other answer uses.
-- Open the file with `sqlite3 -readonly`. A text that is stored compressed (more than 4 KB) is NULL here: cat shows it.
CREATE VIEW shared_events AS
SELECT 'event-' || e.id AS id, e.id AS position, p.key AS project, s.host_id AS session, e.seq, e.kind, e.ts, e.at,
  e.actor, CAST(e.body AS TEXT) AS text, e.meta, e.origin, e.received_at
FROM events e JOIN sessions s ON s.id = e.session JOIN projects p ON p.id = e.project
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = e.id);

CREATE VIEW shared_records AS
SELECT r.type || '-' || r.id AS id, r.type, r.status, r.text, p.key AS project, s.host_id AS session, r.at, c.at AS updated_at,
  r.scope, CASE WHEN r.superseded_by IS NOT NULL THEN r.type || '-' || r.superseded_by END AS superseded_by
FROM records r JOIN sessions s ON s.id = r.session JOIN projects p ON p.id = r.project JOIN events c ON c.id = r.changed_event
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id);

CREATE VIEW shared_versions AS
SELECT 'asset-' || (SELECT MIN(f.event) FROM asset_versions f WHERE f.asset = v.asset
    AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = f.event)) AS asset,
  'event-' || v.event AS event, a.path, a.kind, v.title, v.at, v.hash, v.ref, p.key AS project, s.host_id AS session
FROM asset_versions v JOIN knowledge_assets a ON a.id = v.asset JOIN sessions s ON s.id = v.session
  JOIN projects p ON p.id = v.project
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event);

CREATE VIEW shared_edges AS
SELECT g.type, g.rule, g.confidence,
  CASE g.src_type WHEN 'session' THEN 'session-' || (SELECT host_id FROM sessions WHERE id = g.src)
    WHEN 'asset' THEN (SELECT v.asset FROM shared_versions v WHERE v.event = 'event-' || (SELECT MAX(event) FROM asset_versions
      WHERE asset = g.src AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = asset_versions.event)))
    ELSE g.src_type || '-' || g.src END AS source,
  CASE g.dst_type WHEN 'session' THEN 'session-' || (SELECT host_id FROM sessions WHERE id = g.dst)
    WHEN 'asset' THEN (SELECT v.asset FROM shared_versions v WHERE v.event = 'event-' || (SELECT MAX(event) FROM asset_versions
      WHERE asset = g.dst AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = asset_versions.event)))
    ELSE g.dst_type || '-' || g.dst END AS target,
  g.begin_at, g.end_at
FROM lineage_edges g
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = g.begin_event)
  AND (g.src_type IN ('session', 'asset') OR NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = g.src))
  AND (g.dst_type IN ('session', 'asset') OR NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = g.dst));
