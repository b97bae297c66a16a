-- What stands beside frames: parts of answers, which the fold does not read. Kept
-- apart so that taking a run up reads only what it needs, and so that they can
-- be elided without touching a journal.
CREATE TABLE beside (
    seq  INTEGER PRIMARY KEY, -- frame.seq
    body BLOB NOT NULL        -- the events, encoded, or what is left of them
);
