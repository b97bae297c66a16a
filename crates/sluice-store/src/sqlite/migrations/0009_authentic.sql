-- What decides something carries a MAC, made with a key that is not in here. The
-- tables of frames, snapshots and entries are made anew, since the MAC must lie
-- before the body: a seal reads the narrow columns of every new row, and what lies
-- behind a large body is on other pages. An empty MAC is from before there were any.
CREATE TABLE frame_authentic (
    seq   INTEGER PRIMARY KEY, -- the order of appends over all runs
    run   INTEGER NOT NULL,    -- run.num; 0 for a frame that no journal leads to
    prev  INTEGER NOT NULL,    -- the run's frame before this one; 0 for its first
    first INTEGER NOT NULL,    -- the id of the first event in it
    count INTEGER NOT NULL,    -- how many events it holds
    chain BLOB NOT NULL,       -- the hash of each event, 32 bytes each; empty in old frames
    mac   BLOB NOT NULL,       -- 16 bytes over its place and chain, 16 bytes over its body
    body  BLOB NOT NULL        -- the events, encoded
);
INSERT INTO frame_authentic SELECT seq, run, prev, first, count, chain, x'', body
FROM frame ORDER BY seq;
DROP TABLE frame;
ALTER TABLE frame_authentic RENAME TO frame;

CREATE TABLE snapshot_authentic (
    run     INTEGER PRIMARY KEY, -- run.num
    version INTEGER NOT NULL,    -- the id of the last event in it
    mac     BLOB NOT NULL,       -- over the run, the version, that event's hash, and the body
    body    BLOB NOT NULL        -- the state, encoded
);
INSERT INTO snapshot_authentic SELECT run, version, x'', body FROM snapshot ORDER BY run;
DROP TABLE snapshot;
ALTER TABLE snapshot_authentic RENAME TO snapshot;

CREATE TABLE entry_authentic (
    place  INTEGER PRIMARY KEY, -- the order of entries over all writers
    writer BLOB NOT NULL,       -- the node that wrote it, 16 bytes
    seq    INTEGER NOT NULL,    -- its number in the writer's chain, from 1
    hash   BLOB NOT NULL,       -- SHA-256 of the text, which names the hash before it
    mac    BLOB NOT NULL,       -- over writer, number and hash
    text   TEXT NOT NULL,       -- what was written, canonical JSON
    UNIQUE (writer, seq)
);
INSERT INTO entry_authentic SELECT place, writer, seq, hash, x'', text FROM entry ORDER BY place;
DROP TABLE entry;
ALTER TABLE entry_authentic RENAME TO entry;

ALTER TABLE registry ADD COLUMN mac BLOB NOT NULL DEFAULT x''; -- over kind, name, epoch, body
ALTER TABLE letter ADD COLUMN mac BLOB NOT NULL DEFAULT x'';   -- over the run's id, key, body
ALTER TABLE key ADD COLUMN mac BLOB NOT NULL DEFAULT x'';      -- over all other columns
ALTER TABLE slot ADD COLUMN mac BLOB NOT NULL DEFAULT x'';     -- over all other columns
ALTER TABLE memo ADD COLUMN mac BLOB NOT NULL DEFAULT x'';     -- over agent, the run's id, at, body

-- Says that everything has MACs, and of which key.
CREATE TABLE authentic (
    one  INTEGER PRIMARY KEY, -- always 1; there is none where not everything has them
    mark BLOB NOT NULL        -- a MAC that only this key makes
);
