-- Frames know their run and carry the hashes of their events. The table is made
-- anew, since both must lie before the body: a seal reads the narrow columns of
-- every new frame, and what lies behind a large body is on other pages.
CREATE TABLE frame_hashed (
    seq   INTEGER PRIMARY KEY, -- the order of appends over all runs
    run   INTEGER NOT NULL,    -- run.num; 0 for a frame that no journal leads to
    prev  INTEGER NOT NULL,    -- the run's frame before this one; 0 for its first
    first INTEGER NOT NULL,    -- the id of the first event in it
    count INTEGER NOT NULL,    -- how many events it holds
    chain BLOB NOT NULL,       -- the hash of each event, 32 bytes each; empty in old frames
    body  BLOB NOT NULL        -- the events, encoded
);

-- Which run each old frame belongs to: every chain walked back from its tip.
CREATE TABLE frame_run (
    seq INTEGER PRIMARY KEY, -- frame.seq
    run INTEGER NOT NULL     -- run.num
);
WITH RECURSIVE walk (run, seq) AS (
    SELECT run, seq FROM tip WHERE seq > 0
    UNION ALL
    SELECT walk.run, frame.prev FROM walk JOIN frame ON frame.seq = walk.seq
    WHERE frame.prev > 0 AND frame.prev < frame.seq
)
INSERT OR IGNORE INTO frame_run SELECT seq, run FROM walk;

INSERT INTO frame_hashed
SELECT frame.seq, coalesce(frame_run.run, 0), prev, first, count, x'', body
FROM frame LEFT JOIN frame_run ON frame_run.seq = frame.seq ORDER BY frame.seq;

DROP TABLE frame_run;
DROP TABLE frame;
ALTER TABLE frame_hashed RENAME TO frame;

-- Counters over a window of time. Slices leave with the window: those that are
-- too old are deleted when the counter next changes.
CREATE TABLE slice (
    name   TEXT NOT NULL,    -- the counter's name
    window INTEGER NOT NULL, -- how long the window is, in milliseconds; part of what it is
    number INTEGER NOT NULL, -- the slice's beginning divided by its width, a sixtieth of the window
    count  INTEGER NOT NULL, -- what was added in it
    PRIMARY KEY (name, window, number)
) WITHOUT ROWID;

-- What operators have set up, with its history: rows are only added, and the one
-- of the greatest epoch counts. The epoch is the counter `registry`.
CREATE TABLE registry (
    kind  TEXT NOT NULL,    -- the kind of row
    name  TEXT NOT NULL,    -- its name among those of its kind
    epoch INTEGER NOT NULL, -- the change it came with
    body  TEXT,             -- what it says, JSON; null where the change removed it
    PRIMARY KEY (kind, name, epoch)
) WITHOUT ROWID;

-- The audit: entries in the order they were written, each in its writer's chain.
CREATE TABLE entry (
    place  INTEGER PRIMARY KEY, -- the order of entries over all writers
    writer BLOB NOT NULL,       -- the node that wrote it, 16 bytes
    seq    INTEGER NOT NULL,    -- its number in the writer's chain, from 1
    hash   BLOB NOT NULL,       -- SHA-256 of the text, which names the hash before it
    text   TEXT NOT NULL,       -- what was written, canonical JSON
    UNIQUE (writer, seq)
);

-- Seals over frames and entries, each after the one before.
CREATE TABLE seal (
    number  INTEGER PRIMARY KEY, -- from 1
    hash    BLOB NOT NULL,       -- SHA-256 of the text
    frames  INTEGER NOT NULL,    -- the last frame.seq it passed
    entries INTEGER NOT NULL,    -- the last entry.place it passed
    text    TEXT NOT NULL,       -- what it covers and who signed it, canonical JSON
    leaves  BLOB NOT NULL        -- what its root was made from, encoded
);
