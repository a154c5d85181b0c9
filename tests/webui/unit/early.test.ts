// Requests for the series of many trials.
import assert from 'node:assert/strict';
import test from 'node:test';
import { columns } from '../../../webui-static/src/api';

test('series of many trials are requested in parts, and all but the last answer are told early', async () => {
  const real = globalThis.fetch;
  const asked: number[][] = [];
  globalThis.fetch = async (url) => {
    const ids = new URL(String(url), 'http://master').searchParams.getAll('trialIds').map(Number);
    asked.push(ids);
    return new Response(JSON.stringify({ series: ids.map((trialId) => ({ trialId })) }));
  };
  try {
    const early: number[] = [];
    const ids = Array.from({ length: 120 }, (_, at) => at + 1);
    const all = await columns(ids, { points: 10 }, undefined, (part) => early.push(part.length));
    assert.deepEqual(asked.map(({ length }) => length), [10, 50, 50, 10]);
    assert.deepEqual(all.map(({ trialId }) => trialId), ids);
    assert.equal(early.length, 3);
  } finally {
    globalThis.fetch = real;
  }
});
