-- What agents answered, for those that some memory profile names. The newest of
-- each agent are kept; older ones go when another comes.
CREATE TABLE memo (
    place INTEGER PRIMARY KEY, -- the order in which they were written
    agent TEXT NOT NULL,       -- whose answer
    run   INTEGER NOT NULL,    -- run.num of the run it was given in
    at    INTEGER NOT NULL,    -- when, in milliseconds since 1970
    body  BLOB NOT NULL        -- the answer, encoded
);
CREATE INDEX memo_of_agent ON memo (agent, place);
CREATE INDEX memo_of_run ON memo (run);
