-- Allocations also end because they hung.
ALTER TABLE allocations DROP CONSTRAINT allocations_exit_kind_check;
ALTER TABLE allocations ADD CONSTRAINT allocations_exit_kind_check CHECK (exit_kind IN
    ('SUCCEEDED', 'FAILED', 'LOST', 'STOPPED', 'OUT_OF_MEMORY', 'STORAGE_FULL', 'PREEMPTED', 'INVALID_HP', 'HUNG'));
ALTER TABLE commands DROP CONSTRAINT commands_exit_kind_check;
ALTER TABLE commands ADD CONSTRAINT commands_exit_kind_check CHECK (exit_kind IN
    ('SUCCEEDED', 'FAILED', 'LOST', 'STOPPED', 'OUT_OF_MEMORY', 'STORAGE_FULL', 'PREEMPTED', 'INVALID_HP', 'HUNG'));
