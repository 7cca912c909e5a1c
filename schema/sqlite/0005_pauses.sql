-- Operational, not rebuilt: when nothing of a project, or of all, was to be recorded. An interval stays when it has ended:
-- what was said in it is not stored later either.
CREATE TABLE pauses (
  id INTEGER PRIMARY KEY,
  project TEXT, -- its key; NULL: all projects
  since TEXT NOT NULL,
  until TEXT -- NULL: it lasts
) STRICT;
CREATE INDEX pauses_by_project ON pauses (project, since);
CREATE UNIQUE INDEX pauses_that_last ON pauses (IFNULL(project, '')) WHERE until IS NULL;
