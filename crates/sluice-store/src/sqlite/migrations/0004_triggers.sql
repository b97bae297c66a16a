-- What became of the slots of schedules.
CREATE TABLE slot (
    schedule TEXT NOT NULL,    -- the schedule's name
    at       INTEGER NOT NULL, -- when it is, in milliseconds; of several the last
    count    INTEGER NOT NULL, -- how many slots it stands for
    fate     TEXT NOT NULL,    -- what became of it
    why      TEXT,             -- why
    run      BLOB,             -- the run that is started for it, 16 bytes
    noted_at INTEGER NOT NULL, -- when this was noted, in milliseconds
    PRIMARY KEY (schedule, at)
) WITHOUT ROWID;

-- Which runs took values from which.
CREATE TABLE taking (
    source BLOB NOT NULL,      -- the run they are from, 16 bytes
    taker  BLOB NOT NULL,      -- the run that took them, 16 bytes
    count  INTEGER NOT NULL,   -- how many
    PRIMARY KEY (source, taker)
) WITHOUT ROWID;
