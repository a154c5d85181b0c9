// The state of a GPU as text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readingParts } from '../../../webui-static/src/cluster/reading';

test('each value that the GPU supports is one part', () => {
  const reading = { utilization: 0.37, memoryUsed: 3e9, memoryTotal: 80e9, temperature: 61.4, power: 412.5, smClock: 1.98e9, slowdown: 'power cap' };
  assert.deepEqual(readingParts(reading), ['37% busy', '3.0 GB of 80.0 GB', '61 °C', '413 W', '1980 MHz', 'slowed down: power cap']);
});

test('values that the GPU does not support are left out, zero is not', () => {
  assert.deepEqual(readingParts({ slowdown: '' }), []);
  assert.deepEqual(readingParts({ utilization: 0, memoryUsed: 1e9, temperature: null, slowdown: '' }), ['0% busy', '1.0 GB in use']);
});
