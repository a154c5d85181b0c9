// Media: the entry of a step, and contents in memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Media } from '../../../webui-static/src/calls/media';
import { Recent } from '../../../webui-static/src/media/contents';
import { arranged, lastAtMost } from '../../../webui-static/src/media/steps';

const entry = (trialId: number, name: string, step: number): Media => ({
  trialId,
  name,
  step,
  kind: 'KIND_TEXT',
  caption: '',
  digest: `${trialId}${name}${step}`,
  size: 1,
  fileName: 'text.txt',
});

test('an entry of a step is the newest one that is not later', () => {
  const steps = arranged([entry(1, 'b', 20), entry(1, 'b', 5), entry(2, 'a', 10)]);
  assert.deepEqual(steps.steps, [5, 10, 20]);
  assert.deepEqual(steps.names, ['a', 'b']);
  assert.equal(steps.at(1, 'b', 4), undefined);
  assert.equal(steps.at(1, 'b', 5)?.step, 5);
  assert.equal(steps.at(1, 'b', 19)?.step, 5);
  assert.equal(steps.at(1, 'b', 1000)?.step, 20);
  assert.equal(steps.at(2, 'b', 20), undefined);
  assert.equal(steps.at(1, 'a', 20), undefined);
});

test('the last number at most a limit is found in any list', () => {
  for (const numbers of [[], [3], [1, 3, 3, 9], [0, 2, 4, 6, 8]])
    for (let limit = -1; limit < 11; limit++)
      assert.equal(lastAtMost(numbers.length, (at) => numbers[at] ?? 0, limit), numbers.filter((one) => one <= limit).length - 1);
});

test('values beyond the limit are dropped, the least recently used first', () => {
  const recent = new Recent<string>(10);
  recent.set('a', 'A', 4);
  recent.set('b', 'B', 4);
  assert.equal(recent.get('a'), 'A');
  recent.set('c', 'C', 4);
  assert.equal(recent.has('b'), false);
  assert.equal(recent.get('a'), 'A');
  recent.set('a', 'A2', 2);
  assert.equal(recent.full(), false);
  recent.set('large', 'L', 100);
  assert.deepEqual(['a', 'c', 'large'].map((key) => recent.has(key)), [false, false, true]);
});
