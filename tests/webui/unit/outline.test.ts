// The answer and the details of an explanation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outline } from '../../../webui-static/src/cluster/outline';

test('what starts it now and the estimate are the answer; holders of slots and ends of trials are details', () => {
  const text = `trial 70 of experiment 20 waits for 1 slot: number 3 in the queue
too few slots are free
  trial 60 of experiment 14 has 1 slot on vm
  and 4 more
starts when trial 60 ends
starts now at priority 41 (preempts trial 67)
estimate: in about 5 min, if runs take 10 min (median of 8 recent runs)
pilot det-1 is pending: Priority
`;
  const { answer, details } = outline(text);
  assert.deepEqual(answer.map((line) => line.split(' ').slice(0, 2).join(' ')), [
    'trial 70', 'too few', 'starts now', 'estimate: in', 'pilot det-1',
  ]);
  assert.deepEqual(details, ['trial 60 of experiment 14 has 1 slot on vm', 'and 4 more', 'starts when trial 60 ends']);
});
