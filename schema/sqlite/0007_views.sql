-- For people who prefer SQL: read-only views of what all may see, with the ids that every other answer uses.
-- Open the file read-only. A text of more than 4 KB is stored compressed and NULL here: `graphsvc cat` shows it.
CREATE VIEW shared_events AS
SELECT 'event-' || e.id AS id, e.id AS position, p.key AS project, s.host_id AS session, e.seq, e.kind, e.ts, e.at,
  e.actor, CAST(e.body AS TEXT) AS text,
  -- A host may have made the title of a session from what is isolated in it.
  CASE WHEN e.session IN (SELECT x.session FROM hidden h JOIN events x ON x.id = h.event)
    THEN json_remove(e.meta, '$.title') ELSE e.meta END AS meta,
  e.origin, e.received_at
FROM events e JOIN sessions s ON s.id = e.session JOIN projects p ON p.id = e.project
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = e.id);

-- What an isolated event did to a record that all may see is neither named nor dated.
CREATE VIEW shared_records AS
SELECT r.type || '-' || r.id AS id, r.type, r.status, r.text, p.key AS project, s.host_id AS session, r.at,
  COALESCE(c.at, r.at) AS updated_at, r.scope, r.kind, r.type || '-' || b.id AS superseded_by,
  'decision-' || d.id AS promoted_to
FROM records r JOIN sessions s ON s.id = r.session JOIN projects p ON p.id = r.project
  LEFT JOIN events c ON c.id = r.changed_event AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = c.id)
  LEFT JOIN records b ON b.id = r.superseded_by AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = b.id)
  LEFT JOIN records d ON d.id = r.promoted_to AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = d.id)
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id);

-- An asset goes by its first version that all may see: what the store keeps it under may be an isolated one.
CREATE VIEW shared_assets AS
SELECT 'asset-' || f.event AS id, p.key AS project, a.path, f.kind, g.versions, g.updated_at
FROM (
  SELECT v.asset, MIN(v.event) AS first, COUNT(*) AS versions, MAX(v.at) AS updated_at FROM asset_versions v
  WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event)
  GROUP BY v.asset
) g JOIN asset_versions f ON f.event = g.first JOIN knowledge_assets a ON a.id = g.asset
  JOIN projects p ON p.id = a.project
ORDER BY f.event;

CREATE VIEW shared_versions AS
SELECT 'event-' || v.event AS id,
  (SELECT 'asset-' || MIN(f.event) FROM asset_versions f WHERE f.asset = v.asset
    AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = f.event)) AS asset,
  a.path, v.title, v.at, v.hash, v.ref, s.host_id AS session
FROM asset_versions v JOIN knowledge_assets a ON a.id = v.asset JOIN sessions s ON s.id = v.session
WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event);

CREATE VIEW shared_edges AS
SELECT * FROM (
  SELECT g.type,
    CASE g.src_type WHEN 'session' THEN 'session-' || (SELECT s.host_id FROM sessions s WHERE s.id = g.src)
      WHEN 'asset' THEN (SELECT 'asset-' || MIN(v.event) FROM asset_versions v WHERE v.asset = g.src
        AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event))
      WHEN 'event' THEN (SELECT e.id FROM shared_events e WHERE e.position = g.src)
      ELSE (SELECT r.type || '-' || r.id FROM records r WHERE r.id = g.src
        AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id)) END AS source,
    CASE g.dst_type WHEN 'session' THEN 'session-' || (SELECT s.host_id FROM sessions s WHERE s.id = g.dst)
      WHEN 'asset' THEN (SELECT 'asset-' || MIN(v.event) FROM asset_versions v WHERE v.asset = g.dst
        AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = v.event))
      WHEN 'event' THEN (SELECT e.id FROM shared_events e WHERE e.position = g.dst)
      ELSE (SELECT r.type || '-' || r.id FROM records r WHERE r.id = g.dst
        AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = r.id)) END AS target,
    g.rule, g.confidence, g.begin_at,
    CASE WHEN NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = g.end_event) THEN g.end_at END AS end_at
  FROM lineage_edges g
  WHERE NOT EXISTS (SELECT 1 FROM hidden h WHERE h.event = g.begin_event)
) WHERE source IS NOT NULL AND target IS NOT NULL
ORDER BY begin_at, source, type, target;
