// Moves of jobs in the queue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '../../../webui-static/src/calls/cluster';
import { byPool, moved, movement, waitingAt } from '../../../webui-static/src/cluster/reorder';

const job = (jobId: string, resourcePool = 'p'): Job => ({ jobId, resourcePool }) as Job;
const all = [job('a'), job('b'), job('c')];

test('up is ahead of whom it passes, down behind', () => {
  assert.deepEqual(movement(all, 2, 0), { jobId: 'c', aheadOf: 'a' });
  assert.deepEqual(movement(all, 0, 1), { jobId: 'a', behindOf: 'b' });
  assert.equal(movement(all, 1, 1), undefined);
  assert.equal(movement(all, 1, 7), undefined);
  assert.equal(movement([job('a', 'p'), job('b', 'q')], 0, 1), undefined);
});

test('the list shows the move before the master has', () => {
  assert.deepEqual(moved(['a', 'b', 'c'], 2, 0), ['c', 'a', 'b']);
  assert.deepEqual(moved(['a', 'b', 'c'], 0, 1), ['b', 'a', 'c']);
});

test('a dragged job is found where it waits now, and not once it runs or is gone', () => {
  const of = (jobId: string, state: string): Job => ({ ...job(jobId), summary: { state, jobsAhead: 0 } });
  const now = [of('a', 'STATE_SCHEDULED'), of('c', 'STATE_QUEUED'), of('b', 'STATE_QUEUED')];
  assert.deepEqual(['b', 'c', 'a', 'gone', undefined].map((id) => waitingAt(now, id)), [2, 1, -1, -1, -1]);
  assert.equal(movement(now, -1, 1), undefined);
});

test('each pool has a queue of its own', () => {
  const pools = byPool([job('a', 'z'), job('b', 'y'), job('c', 'z')]);
  assert.deepEqual(pools.map(([pool, list]) => [pool, list.map((one) => one.jobId)]), [['y', ['b']], ['z', ['a', 'c']]]);
});
