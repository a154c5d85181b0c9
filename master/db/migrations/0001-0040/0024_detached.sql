-- One noun, one word: a trial outside the cluster is detached.
ALTER TABLE experiments RENAME COLUMN unmanaged TO detached;
