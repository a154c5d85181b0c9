// The event stream's format, and the effect of an event on the page.
import assert from 'node:assert/strict';
import test from 'node:test';
import { backoff, EventParser, toChange } from '../../../webui-static/src/events';
import { readLines } from '../../../webui-static/src/api';
import { ChangeBatch, type Change } from '../../../webui-static/src/stream';

function parse(body: string): { name: string; data: string }[] {
  const parser = new EventParser();
  return body
    .split('\n')
    .map((line) => parser.feed(line))
    .filter((message) => message !== undefined);
}

test('a message is its event and its data', () => {
  assert.deepEqual(parse('event: trial\ndata: {"trialId":3}\n\n'), [
    { name: 'trial', data: '{"trialId":3}' },
  ]);
});

test('several data lines are joined, a missing space is allowed, ids are ignored', () => {
  assert.deepEqual(parse('id: 7\ndata:a\ndata: b\n\n'), [{ name: 'message', data: 'a\nb' }]);
});

test('comments and empty messages say nothing, and do not leak into the next', () => {
  assert.deepEqual(parse(': ping\n\nevent: logs\n\ndata: 1\n\n'), [{ name: 'message', data: '1' }]);
});

test('ids arrive as numbers or as strings', () => {
  assert.deepEqual(toChange({ name: 'metrics', data: '{"experimentId":"5","trialId":9}' }), {
    kind: 'metrics',
    experimentId: 5,
    trialId: 9,
  });
  const report = { trialId: 9, group: 'validation', batches: 0 };
  assert.deepEqual(toChange({ name: 'metrics', data: JSON.stringify(report) }), { kind: 'metrics', ...report });
  assert.deepEqual(toChange({ name: 'logs', data: '{"taskId":"trial-9"}' }), {
    kind: 'logs',
    taskId: 'trial-9',
  });
});

test('state and progress of an event are read, and whether the state is new', () => {
  const data = { experimentId: 5, state: 'STATE_ACTIVE', progress: 0.25 };
  assert.deepEqual(toChange({ name: 'experiment', data: JSON.stringify(data) }), { kind: 'experiment', ...data });
  assert.deepEqual(toChange({ name: 'experiment', data: JSON.stringify({ ...data, sameState: true }) }), {
    kind: 'experiment',
    ...data,
    sameState: true,
  });
});

test('the id of a message counts once the message is complete', () => {
  const parser = new EventParser();
  parser.feed('id: 7');
  assert.equal(parser.id, '');
  parser.feed('data: {}');
  parser.feed('');
  assert.equal(parser.id, '7');
});

test('an unknown kind is nothing, unreadable data is still a change', () => {
  assert.equal(toChange({ name: 'weather', data: '{}' }), undefined);
  assert.deepEqual(toChange({ name: 'agent', data: 'not json' }), { kind: 'agent' });
});

test('a reset makes everything out of date', () => {
  assert.equal(toChange({ name: 'reset', data: '{}' }), 'everything');
});

test('changes that arrive together are sent together, and of several about one thing the newest', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 1000;
  const sent: Change[][] = [];
  const batch = new ChangeBatch((changes) => sent.push(changes), () => now);
  const pass = (ms: number) => {
    now += ms;
    t.mock.timers.tick(ms);
  };
  batch.add({ kind: 'logs', taskId: 'trial-1' });
  pass(0);
  assert.equal(sent.length, 1, 'the first is sent at once');
  batch.add({ kind: 'experiment', experimentId: 1, state: 'STATE_ACTIVE', progress: 0.1 });
  batch.add({ kind: 'trial', trialId: 2 });
  pass(100);
  batch.add({ kind: 'experiment', experimentId: 1, state: 'STATE_ACTIVE', progress: 0.2, sameState: true });
  batch.add({ kind: 'experiment', experimentId: 1, state: 'STATE_PAUSED', progress: 0.2 });
  assert.equal(sent.length, 1);
  pass(150);
  assert.deepEqual(sent[1], [
    { kind: 'trial', trialId: 2 },
    // Its state was new when it was first reported.
    { kind: 'experiment', experimentId: 1, state: 'STATE_ACTIVE', progress: 0.2, sameState: undefined },
    { kind: 'experiment', experimentId: 1, state: 'STATE_PAUSED', progress: 0.2 },
  ]);
  batch.add({ kind: 'agent' });
  batch.add('everything');
  batch.add({ kind: 'agent' });
  batch.flush();
  assert.deepEqual(sent[2], ['everything']);
  batch.add({ kind: 'agent' });
  batch.clear();
  pass(1000);
  assert.equal(sent.length, 3);
});

test('back-off doubles, is capped, and never is zero', () => {
  assert.equal(backoff(0, 1), 500);
  assert.equal(backoff(3, 1), 4000);
  assert.equal(backoff(50, 1), 15000);
  assert.equal(backoff(0, 0), 250);
});

test('lines are whole however the body is cut, also within a character', async () => {
  const bytes = new TextEncoder().encode('één\r\ntwo\n\nlast');
  for (let size = 1; size <= 5; size++) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const lines: string[] = [];
    for await (const line of readLines(body)) lines.push(line);
    assert.deepEqual(lines, ['één', 'two', '', 'last']);
  }
});
