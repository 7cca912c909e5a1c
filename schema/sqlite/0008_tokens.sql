-- Operational, not rebuilt: the tokens of this home beside the owner's own, which stands in a file. Of each only the
-- SHA-256 digest is kept: a token is 256 random bits, which nobody guesses from it.
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- never another token's
  digest BLOB NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('owner', 'capture', 'read')),
  project TEXT, -- key of the only project it is for; NULL: all
  session TEXT, -- host's id of the session it speaks for
  agent TEXT,
  name TEXT,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  revoked_at TEXT
) STRICT;
