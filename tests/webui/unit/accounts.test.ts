// Refused accounts and the fields they are about.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withField } from '../../../webui-static/src/calls/accounts';
import { ApiError } from '../../../webui-static/src/http';

const field = (message: string): string | undefined => {
  const [problem] = (withField(new ApiError(400, message)) as ApiError).problems;
  return problem && `${problem.path}: ${problem.message}`;
};

test('a refused account marks the field that the message is about', () => {
  assert.equal(field('the password is empty'), 'password: is empty');
  assert.equal(field("a user's name has 1 to 64 bytes"), 'username: has 1 to 64 bytes');
  assert.equal(field('a display name has at most 256 bytes'), 'displayName: has at most 256 bytes');
});

test('other errors stay as they are', () => {
  assert.equal(field('users have passwords here'), undefined);
  const lost = new Error('the password is lost');
  assert.equal(withField(lost), lost);
});
