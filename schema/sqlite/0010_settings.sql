-- Operational, not rebuilt: what the owner has set about privacy. `project` is its key; NULL: all projects.
CREATE TABLE settings (
  project TEXT,
  name TEXT NOT NULL,
  value TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX settings_once ON settings (IFNULL(project, ''), name);

-- A pause that the .graphsvc.toml of a folder states, for what is said below; NULL: the owner paused.
ALTER TABLE pauses ADD COLUMN folder TEXT;
DROP INDEX pauses_that_last;
CREATE UNIQUE INDEX pauses_that_last ON pauses (IFNULL(project, ''), IFNULL(folder, '')) WHERE until IS NULL;
