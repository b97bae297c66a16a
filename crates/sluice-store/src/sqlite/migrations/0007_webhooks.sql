-- How far webhooks have come along the feed.
CREATE TABLE webhook (
    name  TEXT PRIMARY KEY,   -- the webhook's name
    place INTEGER NOT NULL,   -- up to where deliveries are noted
    last  INTEGER NOT NULL    -- the number of its last delivery
) WITHOUT ROWID;

-- What is sent to webhooks, and what became of it.
CREATE TABLE delivery (
    webhook TEXT NOT NULL,    -- the webhook's name
    number  INTEGER NOT NULL, -- its number among those of the webhook
    run     BLOB NOT NULL,    -- whose event it is, 16 bytes
    event   INTEGER NOT NULL, -- the event's id
    kind    TEXT NOT NULL,    -- the event's name
    tries   INTEGER NOT NULL, -- how often it was sent
    status  INTEGER,          -- the status that came back last
    error   TEXT,             -- what went wrong last
    at      INTEGER NOT NULL, -- when this was noted, in milliseconds
    next_at INTEGER,          -- when it is sent next, in milliseconds; none when it is over
    PRIMARY KEY (webhook, number)
) WITHOUT ROWID;
-- An event is for a webhook once.
CREATE UNIQUE INDEX delivery_event ON delivery (webhook, run, event);
CREATE INDEX delivery_due ON delivery (webhook, next_at) WHERE next_at IS NOT NULL;
