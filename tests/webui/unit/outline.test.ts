// The answer and the details of an explanation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outline } from '../../../webui-static/src/cluster/outline';

test('why it waits, when it starts and the estimate are one paragraph; holders of slots are details', () => {
  const text = `trial 70 of experiment 20 waits for 1 slot: number 3 of 9 in the queue
too few slots are free
slots are kept for it on vm
  trial 60 of experiment 14 has 1 slot on vm
  and 4 more
starts when trial 60 ends
starts when command 7f ends
starts now at priority 41 (preempts trial 67)
estimate: in about 5 min, if runs take 10 min (median of 8 recent)
pilot det-1 is pending: Priority
`;
  const { headline, answer, details } = outline(text);
  assert.equal(headline, 'Trial 70 of experiment 20 waits for 1 slot: number 3 of 9 in the queue.');
  assert.equal(
    answer,
    'Too few slots are free; the next free ones on vm are kept for it. ' +
      'It starts when trial 60 or command 7f ends, or now at priority 41 (preempts trial 67). ' +
      'Estimate: in about 5 min, if runs take 10 min (median of 8 recent). Pilot det-1 is pending: Priority.',
  );
  assert.deepEqual(details, ['Trial 60 of experiment 14 has 1 slot on vm.', 'And 4 more.']);
});

test('many tasks whose end would start it are counted', () => {
  const ends = [1, 2, 3, 4, 5].map((id) => `starts when trial ${id} ends`).join('\n');
  assert.equal(outline(`trial 9 waits for 1 slot\ntoo few slots are free\n${ends}`).answer, 'Too few slots are free. It starts when one of 5 running tasks ends.');
});
