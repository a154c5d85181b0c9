-- The id of a checkpoint names its directory. Rows of earlier releases with other ids can be neither read nor removed:
-- they become DELETED, and their files stay.
UPDATE checkpoints SET state = 'DELETED', deleting = false
 WHERE state <> 'DELETED' AND uuid !~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
-- The triggers of the update are due before the table can change.
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE checkpoints
  ADD CHECK (state = 'DELETED' OR uuid ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$');
