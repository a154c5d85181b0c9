// The user that a browser remembers.
import assert from 'node:assert/strict';
import test from 'node:test';
import { readUser } from '../../../webui-static/src/session';

test('a remembered user is read, and other texts are not', () => {
  const ada = { id: 3, username: 'ada', admin: true, displayName: 'Ada' };
  assert.deepEqual(readUser(JSON.stringify({ ...ada, more: 1 })), ada);
  for (const text of [null, '', '{', 'null', '7', '{"id":"3","username":"ada"}', '{"id":3}']) assert.equal(readUser(text), undefined);
});
