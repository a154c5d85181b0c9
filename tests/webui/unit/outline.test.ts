// The answer and the details of an explanation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outline } from '../../../webui-static/src/cluster/outline';

test('what starts it now and the estimate are the answer; holders of slots and ends of trials are details', () => {
  const text = `trial 70 of experiment 20 waits for 1 slot: number 3 of 9 in the queue
too few slots are free
  trial 60 of experiment 14 has 1 slot on vm
  and 4 more
starts when trial 60 ends
starts now at priority 41 (preempts trial 67)
estimate: in about 5 min, if runs take 10 min (median of 8 recent)
pilot det-1 is pending: Priority
`;
  const { headline, answer, details } = outline(text);
  assert.equal(headline, 'Trial 70 of experiment 20 waits for 1 slot: number 3 of 9 in the queue.');
  assert.deepEqual(answer, [
    'Too few slots are free.',
    'Starts now at priority 41 (preempts trial 67).',
    'Estimate: in about 5 min, if runs take 10 min (median of 8 recent).',
    'Pilot det-1 is pending: Priority.',
  ]);
  assert.deepEqual(details, ['Trial 60 of experiment 14 has 1 slot on vm.', 'And 4 more.', 'Starts when trial 60 ends.']);
});
