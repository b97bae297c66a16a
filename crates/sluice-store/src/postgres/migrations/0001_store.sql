-- What the lists show of a run, who owns it, and where its journal ends. Most
-- appends change the version alone, which no index holds.
CREATE TABLE run (
    id          uuid PRIMARY KEY,          -- the run's id, sorted by time
    workflow    text COLLATE "C" NOT NULL, -- the workflow's name
    release     bigint,                    -- the workflow's version, if it has one
    initiator   text COLLATE "C" NOT NULL, -- who started it; empty where it was not kept
    status      text COLLATE "C" NOT NULL, -- as of the last head
    started_at  bigint NOT NULL,           -- milliseconds since 1970, like every time here
    ended_at    bigint,                    -- null while it has not ended
    parent      uuid,                      -- the run that started it
    fingerprint bytea,                     -- of what it was started with, if a key came with it
    owner       uuid,                      -- the node that owns it; null while it is parked
    epoch       bigint NOT NULL,           -- grows each time it changes hands
    due_at      bigint,                    -- when it next needs an owner; read only without one
    asks        boolean NOT NULL,          -- whether it waits for a person's answer
    version     bigint NOT NULL            -- the id of the last event in its journal
) WITH (fillfactor = 80);

-- Parked runs in the order in which they need an owner.
CREATE INDEX run_due ON run (due_at, id) WHERE owner IS NULL AND due_at IS NOT NULL;
-- The runs of a node, for take-over.
CREATE INDEX run_owner ON run (owner, id) WHERE owner IS NOT NULL;
-- The lists, newest first.
CREATE INDEX run_status ON run (status, id);
CREATE INDEX run_workflow ON run (workflow, id);
CREATE INDEX run_parent ON run (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX run_asks ON run (id) WHERE asks;

-- The journals: one row per append. The key begins with the run, so that the
-- table can be partitioned by it.
CREATE TABLE frame (
    run    uuid NOT NULL,   -- whose journal
    first  bigint NOT NULL, -- the id of the first event in it
    count  integer NOT NULL, -- how many events it holds
    place  bigint NOT NULL, -- the order of appends over all runs, without a gap
    chain  bytea NOT NULL,  -- the hash of each event, 32 bytes each
    body   bytea NOT NULL,  -- the events, encoded
    beside bytea,           -- what stands beside it and the fold does not read; mostly nothing
    PRIMARY KEY (run, first)
);
CREATE INDEX frame_place ON frame (place);

-- How many of each there are over all runs and nodes. Whoever adds some holds
-- this one row until it commits, so that places become visible in their order.
CREATE TABLE position (
    one     integer PRIMARY KEY, -- always 1
    frames  bigint NOT NULL,     -- the last frame.place
    entries bigint NOT NULL,     -- the last entry.place
    letters bigint NOT NULL,     -- the last letter.id
    memos   bigint NOT NULL      -- the last memo.place
) WITH (fillfactor = 50);
INSERT INTO position VALUES (1, 0, 0, 0, 0);

-- The newest snapshot of a run.
CREATE TABLE snapshot (
    run     uuid PRIMARY KEY, -- whose
    version bigint NOT NULL,  -- the id of the last event in it
    body    bytea NOT NULL    -- the state, encoded
);

-- Large values, once each, however many frames refer to them.
CREATE TABLE blob (
    hash bytea PRIMARY KEY, -- SHA-256 of the body
    body bytea NOT NULL     -- the bytes
);

-- Messages to runs. A row stays when its letter has been read, so that the same
-- letter is not taken twice.
CREATE TABLE letter (
    run  uuid NOT NULL,             -- the addressee
    key  text COLLATE "C" NOT NULL, -- the sender's name for it, used once per run
    id   bigint NOT NULL,           -- the order of letters
    body bytea,                     -- the message, encoded; null once read
    PRIMARY KEY (run, key)
);
-- Letters that nobody has read, by addressee.
CREATE INDEX letter_unread ON letter (run, id) WHERE body IS NOT NULL;

-- How long each process that owns runs has said it would live.
CREATE TABLE node (
    id      uuid PRIMARY KEY, -- the node
    ends_at bigint NOT NULL   -- when the lease ends
);

-- Counters that appends change, or are refused by. A row is made before its
-- counter is first looked at and never goes, so that it can always be locked.
CREATE TABLE counter (
    name   text COLLATE "C" NOT NULL, -- its name
    span   bigint NOT NULL,           -- how long its window is, in milliseconds; 0 for a plain one
    count  bigint NOT NULL,           -- what a plain one is
    slices bytea,                     -- a window's slices: number and count, 8 bytes each, in order
    PRIMARY KEY (name, span)
) WITH (fillfactor = 50);

-- Callers' idempotency keys.
CREATE TABLE key (
    key         text COLLATE "C" PRIMARY KEY, -- what the caller sent
    run         uuid NOT NULL,                -- the run that was created with it
    fingerprint bytea NOT NULL,               -- of what that run was started with
    expires_at  bigint NOT NULL               -- from then on the key is free again
);
-- Keys in the order in which they can be forgotten.
CREATE INDEX key_expires ON key (expires_at);

-- What operators have set up, with its history: rows are only added, and the one
-- of the greatest epoch counts. The epoch is the counter `registry`.
CREATE TABLE registry (
    kind  text COLLATE "C" NOT NULL, -- the kind of row
    name  text COLLATE "C" NOT NULL, -- its name among those of its kind
    epoch bigint NOT NULL,           -- the change it came with
    body  text,                      -- what it says, JSON; null where the change removed it
    PRIMARY KEY (kind, name, epoch)
);

-- The audit: entries in the order they were written, each in its writer's chain.
CREATE TABLE entry (
    writer uuid NOT NULL,   -- the node that wrote it
    seq    bigint NOT NULL, -- its number in the writer's chain, from 1
    place  bigint NOT NULL, -- the order of entries over all writers, without a gap
    hash   bytea NOT NULL,  -- SHA-256 of the text, which names the hash before it
    text   text NOT NULL,   -- what was written, canonical JSON
    PRIMARY KEY (writer, seq)
);
CREATE INDEX entry_place ON entry (place);

-- Where each writer's chain of entries ends.
CREATE TABLE chain (
    writer uuid PRIMARY KEY, -- the node
    seq    bigint NOT NULL,  -- the number of its last entry; 0 before the first
    hash   bytea NOT NULL    -- the hash of that
) WITH (fillfactor = 50);

-- Seals over frames and entries, each after the one before.
CREATE TABLE seal (
    number  bigint PRIMARY KEY, -- from 1
    hash    bytea NOT NULL,     -- SHA-256 of the text
    frames  bigint NOT NULL,    -- the last frame.place it passed
    entries bigint NOT NULL,    -- the last entry.place it passed
    text    text NOT NULL,      -- what it covers and who signed it, canonical JSON
    leaves  bytea NOT NULL      -- what its root was made from, encoded
);

-- What became of the slots of schedules.
CREATE TABLE slot (
    schedule text COLLATE "C" NOT NULL, -- the schedule's name
    at       bigint NOT NULL,           -- when it is, in milliseconds; of several the last
    count    bigint NOT NULL,           -- how many slots it stands for
    fate     text COLLATE "C" NOT NULL, -- what became of it
    why      text,                      -- why
    run      uuid,                      -- the run that is started for it
    noted_at bigint NOT NULL,           -- when this was noted
    PRIMARY KEY (schedule, at)
);

-- Which runs took values from which.
CREATE TABLE taking (
    source uuid NOT NULL,   -- the run they are from
    taker  uuid NOT NULL,   -- the run that took them
    count  bigint NOT NULL, -- how many
    PRIMARY KEY (source, taker)
);

-- What agents answered, for those that some memory profile names. The newest of
-- each agent are kept; older ones go when another comes.
CREATE TABLE memo (
    agent text COLLATE "C" NOT NULL, -- whose answer
    place bigint NOT NULL,           -- the order in which they were written
    run   uuid NOT NULL,             -- the run it was given in
    at    bigint NOT NULL,           -- when
    body  bytea NOT NULL,            -- the answer, encoded
    PRIMARY KEY (agent, place)
);
CREATE INDEX memo_run ON memo (run);

-- How far webhooks have come along the feed.
CREATE TABLE webhook (
    name  text COLLATE "C" PRIMARY KEY, -- the webhook's name
    place bigint NOT NULL,              -- up to where deliveries are noted
    last  bigint NOT NULL               -- the number of its last delivery
);

-- What is sent to webhooks, and what became of it.
CREATE TABLE delivery (
    webhook text COLLATE "C" NOT NULL, -- the webhook's name
    number  bigint NOT NULL,           -- its number among those of the webhook
    run     uuid NOT NULL,             -- whose event it is
    event   bigint NOT NULL,           -- the event's id
    kind    text NOT NULL,             -- the event's name
    tries   bigint NOT NULL,           -- how often it was sent
    status  integer,                   -- the status that came back last
    error   text,                      -- what went wrong last
    at      bigint NOT NULL,           -- when this was noted
    next_at bigint,                    -- when it is sent next; null when it is over
    PRIMARY KEY (webhook, number)
);
-- An event is for a webhook once.
CREATE UNIQUE INDEX delivery_event ON delivery (webhook, run, event);
CREATE INDEX delivery_due ON delivery (webhook, next_at, number) WHERE next_at IS NOT NULL;

-- What all nodes must have in common, though it is not kept here: what can be told
-- of their keys. Whoever comes first says it.
CREATE TABLE agreed (
    name  text COLLATE "C" PRIMARY KEY, -- of what
    value text NOT NULL                 -- what was said
);
