-- What the lists show of a run, and who owns it. Changes when a head comes or
-- the run is claimed, not with every append.
CREATE TABLE run (
    num         INTEGER PRIMARY KEY, -- a short name for the other tables
    id          BLOB NOT NULL UNIQUE, -- the run's id, 16 bytes, sorted by time
    workflow    TEXT NOT NULL,       -- the workflow's name
    version     INTEGER,             -- the workflow's version, if it has one
    status      TEXT NOT NULL,       -- as of the last head
    started_at  INTEGER NOT NULL,    -- milliseconds since 1970, like every time here
    ended_at    INTEGER,             -- null while it has not ended
    parent      BLOB,                -- the id of the run that started it
    fingerprint BLOB,                -- of what it was started with, if a key came with it
    owner       BLOB,                -- the node that owns it, 16 bytes; null while it is parked
    epoch       INTEGER NOT NULL,    -- grows each time it changes hands
    due_at      INTEGER              -- when it next needs an owner; read only without one
);

-- Parked runs in the order in which they need an owner.
CREATE INDEX run_due ON run (due_at, id) WHERE owner IS NULL AND due_at IS NOT NULL;
-- The runs of a node, for take-over.
CREATE INDEX run_owner ON run (owner, id) WHERE owner IS NOT NULL;
-- The lists, newest first.
CREATE INDEX run_status ON run (status, id);
CREATE INDEX run_workflow ON run (workflow, id);
CREATE INDEX run_parent ON run (parent, id) WHERE parent IS NOT NULL;

-- The journals: one row per append, in the order of appends. There is no index
-- by run: with many runs at work it would cost a page per append. The frames of
-- a run are a chain instead, newest first, entered at its tip or at a mark.
CREATE TABLE frame (
    seq   INTEGER PRIMARY KEY, -- the order of appends over all runs
    prev  INTEGER NOT NULL,    -- the run's frame before this one; 0 for its first
    first INTEGER NOT NULL,    -- the id of the first event in it
    count INTEGER NOT NULL,    -- how many events it holds
    body  BLOB NOT NULL        -- the events, encoded
);

-- Where a run's journal ends. All that changes with every append but the frame
-- itself, so it is narrow: some hundred runs share a page.
CREATE TABLE tip (
    run     INTEGER PRIMARY KEY, -- run.num
    version INTEGER NOT NULL,    -- the id of the last event
    seq     INTEGER NOT NULL,    -- the last frame
    frames  INTEGER NOT NULL     -- how many frames there are
);

-- Every so many frames of a run, where one lies: a walk from the next mark finds
-- any frame in a bounded number of steps.
CREATE TABLE mark (
    run   INTEGER NOT NULL, -- run.num
    first INTEGER NOT NULL, -- frame.first
    seq   INTEGER NOT NULL, -- frame.seq
    PRIMARY KEY (run, first)
) WITHOUT ROWID;

-- The newest snapshot of a run.
CREATE TABLE snapshot (
    run     INTEGER PRIMARY KEY, -- run.num
    version INTEGER NOT NULL,    -- the id of the last event in it
    body    BLOB NOT NULL        -- the state, encoded
);

-- Large values, once each, however many frames refer to them.
CREATE TABLE blob (
    hash BLOB NOT NULL UNIQUE, -- SHA-256 of the body
    body BLOB NOT NULL         -- the bytes
);

-- Messages to runs. A row stays when its letter has been read, so that the same
-- letter is not taken twice.
CREATE TABLE letter (
    id   INTEGER PRIMARY KEY, -- the order of letters
    run  INTEGER NOT NULL,    -- the addressee, run.num
    key  TEXT NOT NULL,       -- the sender's name for it, used once per run
    body BLOB,                -- the message, encoded; null once read
    UNIQUE (run, key)
);

-- Letters that nobody has read, by addressee.
CREATE INDEX letter_unread ON letter (run) WHERE body IS NOT NULL;

-- How long each process that owns runs has said it would live.
CREATE TABLE node (
    id      BLOB PRIMARY KEY, -- the node's id, 16 bytes
    ends_at INTEGER NOT NULL  -- when the lease ends
) WITHOUT ROWID;

-- Counters that appends change, or are refused by.
CREATE TABLE counter (
    name  TEXT PRIMARY KEY, -- its name; one without a row is zero
    count INTEGER NOT NULL  -- its value
) WITHOUT ROWID;

-- Callers' idempotency keys.
CREATE TABLE key (
    key         TEXT PRIMARY KEY, -- what the caller sent
    run         BLOB NOT NULL,    -- the id of the run that was created with it
    fingerprint BLOB NOT NULL,    -- of what that run was started with
    expires_at  INTEGER NOT NULL  -- from then on the key is free again
) WITHOUT ROWID;

-- Keys in the order in which they can be forgotten.
CREATE INDEX key_expires ON key (expires_at);
