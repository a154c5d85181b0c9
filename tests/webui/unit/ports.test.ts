// The pages attached to the shared worker.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Pages, SILENT_MS } from '../../../webui-static/src/ports';

class Port {
  got: object[] = [];
  postMessage(message: object): void {
    this.got.push(message);
  }
}

function fresh() {
  const calls: string[] = [];
  const stream = { open: () => calls.push('open'), close: () => calls.push('close'), renew: () => calls.push('renew'), last: () => 8 };
  return { calls, pages: new Pages<Port>(stream) };
}

test('a page that crashed is dropped when its reports stay away', () => {
  const { pages, calls } = fresh();
  const [crashed, alive] = [new Port(), new Port()];
  pages.add(crashed, 0);
  pages.add(alive, 0);
  pages.receive(alive, 'ping', SILENT_MS + 1);
  assert.equal(pages.size, 1);
  pages.send({ changes: ['everything'] });
  assert.deepEqual(crashed.got, [{ connection: 'connecting' }]);
  pages.receive(alive, 'leave', SILENT_MS + 2);
  assert.deepEqual(calls.at(-1), 'close');
});

test('a page that was dropped and reports again is attached again, and reloads', () => {
  const { pages } = fresh();
  const [late, other] = [new Port(), new Port()];
  pages.add(late, 0);
  pages.add(other, SILENT_MS + 1);
  assert.equal(pages.size, 1);
  pages.receive(late, 'ping', SILENT_MS + 2);
  assert.equal(pages.size, 2);
  assert.deepEqual(late.got.slice(1), [{ alive: true }, { changes: ['everything'] }]);
});

test('a new page learns the state of the connection and the last event before it', () => {
  const { pages } = fresh();
  const first = new Port();
  pages.add(first, 0);
  pages.send({ connection: 'live', after: 7 });
  const late = new Port();
  pages.add(late, 1);
  assert.deepEqual(first.got, [{ connection: 'connecting' }, { connection: 'live', after: 7 }]);
  assert.deepEqual(late.got, [{ connection: 'live', after: 8 }]);
});
