// The mirror of what all may see: nodes by the ids that every answer prints, one relation table an edge type.
// It is made anew from SQLite whenever it is another one: change this file freely, nothing migrates.
CREATE NODE TABLE Meta (
  id INT64 PRIMARY KEY, // 0: there is one row
  position INT64, // of the ledger, that everything here stands at
  versions STRING, // of this file and of the rules that wrote the tables it was read from
  ledger STRING // which ledger: its first event, and the one at the position
);

CREATE NODE TABLE Node (
  id STRING PRIMARY KEY, // decision-41, asset-<first shared version>, session-<host id>, event-7
  type STRING, // session, event, asset, goal, decision, feedback, candidate, todo
  number INT64, // what the id ends with; of a session the store's key
  project STRING,
  session STRING, // the host's id; of an asset the one that wrote its first shared version
  kind STRING, // of an event, an asset, feedback
  status STRING, // of a record
  title STRING, // at most 120 characters
  path STRING, // of an asset
  superseded_by STRING, // of a decision, the id of the one that replaced it
  at STRING, // when it began, UTC
  updated_at STRING // when it changed last
);

CREATE REL TABLE PRODUCES (FROM Node TO Node, rule STRING, confidence STRING, begin_event INT64, begin_at STRING, end_event INT64, end_at STRING);
CREATE REL TABLE REFERENCES (FROM Node TO Node, rule STRING, confidence STRING, begin_event INT64, begin_at STRING, end_event INT64, end_at STRING);
CREATE REL TABLE EVIDENCE (FROM Node TO Node, rule STRING, confidence STRING, begin_event INT64, begin_at STRING, end_event INT64, end_at STRING);
CREATE REL TABLE PRECEDES (FROM Node TO Node, rule STRING, confidence STRING, begin_event INT64, begin_at STRING, end_event INT64, end_at STRING);
CREATE REL TABLE NEXT_STEP (FROM Node TO Node, rule STRING, confidence STRING, begin_event INT64, begin_at STRING, end_event INT64, end_at STRING);
