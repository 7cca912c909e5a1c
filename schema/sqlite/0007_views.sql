-- For people who prefer SQL: read-only views of what all may see, with the ids that every other answer uses.
-- Open the file read-only. A text of more than 4 KB is stored compressed and NULL here: `graphsvc cat` shows it.
CREATE VIEW shared_events AS
SELECT 'event-' || e.id AS id, e.id AS position, p.key AS project, s.host_id AS session, e.seq, e.kind, e.ts, e.at,
  e.actor, CAST(e.body AS TEXT) AS text, e.meta, e.origin, e.received_at
FROM events e JOIN sessions s ON s.id = e.session JOIN projects p ON p.id = e.project
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = e.id);

CREATE VIEW shared_records AS
SELECT r.type || '-' || r.id AS id, r.type, r.status, r.text, p.key AS project, s.host_id AS session, r.at,
  c.at AS updated_at, r.scope, r.kind, r.type || '-' || r.superseded_by AS superseded_by,
  'decision-' || r.promoted_to AS promoted_to
FROM records r JOIN sessions s ON s.id = r.session JOIN projects p ON p.id = r.project
  JOIN events c ON c.id = r.changed_event
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id);

CREATE VIEW shared_assets AS
SELECT 'asset-' || MIN(v.event) AS id, p.key AS project, a.path, a.kind, COUNT(*) AS versions, MAX(v.at) AS updated_at,
  a.id AS key
FROM asset_versions v JOIN knowledge_assets a ON a.id = v.asset JOIN projects p ON p.id = v.project
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event)
GROUP BY a.id;

CREATE VIEW shared_versions AS
SELECT 'event-' || v.event AS id, a.id AS asset, a.path, v.title, v.at, v.hash, v.ref, s.host_id AS session
FROM asset_versions v JOIN shared_assets a ON a.key = v.asset JOIN sessions s ON s.id = v.session
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event);

CREATE VIEW shared_edges AS
SELECT * FROM (
  SELECT g.type,
    CASE g.src_type WHEN 'session' THEN 'session-' || (SELECT s.host_id FROM sessions s WHERE s.id = g.src)
      WHEN 'asset' THEN (SELECT a.id FROM shared_assets a WHERE a.key = g.src)
      WHEN 'event' THEN (SELECT e.id FROM shared_events e WHERE e.position = g.src)
      ELSE (SELECT r.type || '-' || r.id FROM records r WHERE r.id = g.src
        AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id)) END AS source,
    CASE g.dst_type WHEN 'session' THEN 'session-' || (SELECT s.host_id FROM sessions s WHERE s.id = g.dst)
      WHEN 'asset' THEN (SELECT a.id FROM shared_assets a WHERE a.key = g.dst)
      WHEN 'event' THEN (SELECT e.id FROM shared_events e WHERE e.position = g.dst)
      ELSE (SELECT r.type || '-' || r.id FROM records r WHERE r.id = g.dst
        AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id)) END AS target,
    g.rule, g.confidence, g.begin_at, g.end_at
  FROM lineage_edges g
  WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = g.begin_event)
) WHERE source IS NOT NULL AND target IS NOT NULL;
