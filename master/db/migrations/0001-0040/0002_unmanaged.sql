-- Owns experiments whose trial runs outside the cluster.
ALTER TABLE experiments ADD COLUMN unmanaged boolean NOT NULL DEFAULT false;
