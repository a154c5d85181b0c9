// Lists that take several requests: the series of many trials, experiments that have not ended.
import assert from 'node:assert/strict';
import test from 'node:test';
import { columns } from '../../../webui-static/src/api';
import { unfinished } from '../../../webui-static/src/cluster/use';

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

test('experiments that run are found beyond the newest ones that have not ended', async () => {
  const real = globalThis.fetch;
  const asked: string[] = [];
  const open = { total: 2 };
  globalThis.fetch = async (url, init) => {
    asked.push(`${url} ${init?.body ?? ''}`);
    if (!init?.body) {
      const jobs = [['TYPE_EXPERIMENT', '3'], ['TYPE_COMMAND', '5'], ['TYPE_EXPERIMENT', '901']].map(([type, entityId]) => ({ type, entityId }));
      return new Response(JSON.stringify({ jobs }));
    }
    const ids = String(init.body).includes('[3]') ? [3] : [902, 901];
    return new Response(JSON.stringify({ experiments: ids.map((id) => ({ experiment: { id } })), pagination: { total: open.total } }));
  };
  const found = async () => {
    const { all, ...rest } = await unfinished();
    return { ids: all.map(({ id }) => id), ...rest };
  };
  try {
    assert.deepEqual(await found(), { ids: [902, 901], isCut: false, isRunningCut: false });
    assert.equal(asked.length, 1);
    open.total = 700;
    assert.deepEqual(await found(), { ids: [902, 901, 3], isCut: true, isRunningCut: false });
    assert.match(asked[2] ?? '', /^\/api\/v1\/job-queues\?states=STATE_SCHEDULED&limit=200/);
  } finally {
    globalThis.fetch = real;
  }
});
