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
  assert.equal(headline, 'Waits for 1 slot, third of 9 in the queue');
  assert.deepEqual(answer, [
    'Too few slots are free.',
    'At priority 41 it starts now and pauses trial 67.',
    'It starts in about 5 min if runs take 10 min, the median of 8 recent runs.',
    'Pilot det-1 is pending: Priority.',
  ]);
  assert.deepEqual(details, ['Trial 60 of experiment 14 has 1 slot on vm.', 'And 4 more.', 'It starts when trial 60 ends.']);
});

test('the headline names the place in the queue; a text without one has no headline', () => {
  const headline = (first: string): string => outline(`${first}\n`).headline;
  assert.equal(headline('trial 7 of experiment 4 waits for 4 slots on one agent: number 1 of 1 in the queue'), 'Waits for 4 slots on one agent, alone in the queue');
  assert.equal(headline('command 4f waits for 0 slots: number 4 of 12 in the queue'), 'Waits for 0 slots, number 4 of 12 in the queue');
  assert.deepEqual(outline('trial 7: it does not wait for slots\n'), { headline: '', answer: ['Trial 7: it does not wait for slots.'], details: [] });
  assert.deepEqual(outline('x waits for 1 slot: number 1 of 2 in the queue\nstarts now at priority 3\n').answer, ['At priority 3 it starts now.']);
});
