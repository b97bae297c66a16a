-- Who started a run, for lists. Runs of before have it in their journals alone.
ALTER TABLE run ADD COLUMN initiator TEXT NOT NULL DEFAULT ''; -- empty where it was not kept
