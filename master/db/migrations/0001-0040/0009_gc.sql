-- A checkpoint that is to go: marked first, then its files are removed, then it is DELETED and the mark is taken back.
ALTER TABLE checkpoints ADD COLUMN deleting boolean NOT NULL DEFAULT false;
CREATE INDEX checkpoints_deleting ON checkpoints (uuid) WHERE deleting;
