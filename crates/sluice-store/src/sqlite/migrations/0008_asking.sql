-- Whether a run waits for a person's answer, for the list of questions. Of runs
-- from before nobody knows without reading them: those that have not ended may.
ALTER TABLE run ADD COLUMN asks INTEGER NOT NULL DEFAULT 0; -- 1 if it does, as of the last head
UPDATE run SET asks = 1 WHERE ended_at IS NULL;
CREATE INDEX run_asks ON run (id) WHERE asks = 1;
