-- What decides something carries a MAC, made with a key that is not in here. An
-- empty one is from before there were any.
ALTER TABLE frame ADD COLUMN mac bytea NOT NULL DEFAULT '';    -- 16 bytes over run, first, count and chain, 16 bytes over the body
ALTER TABLE snapshot ADD COLUMN mac bytea NOT NULL DEFAULT ''; -- over run, version, that event's hash, body
ALTER TABLE entry ADD COLUMN mac bytea NOT NULL DEFAULT '';    -- over writer, seq and hash
ALTER TABLE registry ADD COLUMN mac bytea NOT NULL DEFAULT ''; -- over kind, name, epoch, body
ALTER TABLE letter ADD COLUMN mac bytea NOT NULL DEFAULT '';   -- over run, key and body
ALTER TABLE key ADD COLUMN mac bytea NOT NULL DEFAULT '';      -- over all other columns
ALTER TABLE slot ADD COLUMN mac bytea NOT NULL DEFAULT '';     -- over all other columns
ALTER TABLE memo ADD COLUMN mac bytea NOT NULL DEFAULT '';     -- over agent, run, at and body

-- Says that everything has MACs, and of which key.
CREATE TABLE authentic (
    one  integer PRIMARY KEY, -- always 1; there is none where not everything has them
    mark bytea NOT NULL       -- a MAC that only this key makes
);
