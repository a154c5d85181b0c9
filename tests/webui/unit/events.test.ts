// The event stream's format, and the effect of an event on the page.
import assert from 'node:assert/strict';
import test from 'node:test';
import { backoff, EventParser, toChange } from '../../../webui-static/src/events';
import { readLines } from '../../../webui-static/src/api';

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
  assert.deepEqual(toChange({ name: 'logs', data: '{"taskId":"trial-9"}' }), {
    kind: 'logs',
    taskId: 'trial-9',
  });
});

test('state and progress of an event are read', () => {
  assert.deepEqual(toChange({ name: 'experiment', data: '{"experimentId":5,"state":"STATE_ACTIVE","progress":0.25}' }), {
    kind: 'experiment',
    experimentId: 5,
    state: 'STATE_ACTIVE',
    progress: 0.25,
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
