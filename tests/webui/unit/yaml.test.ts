// Owns the tests of small changes to a configuration's text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withKey } from '../../../webui-static/src/yaml';

test('a key is put into its mapping, or replaced, and the rest stays as it was written', () => {
  const cases: [string, string][] = [
    ['name: x\nsearcher:\n    name: single  # why\nmax_restarts: 1\n', 'name: x\nsearcher:\n    id: 7\n    name: single  # why\nmax_restarts: 1\n'],
    ['searcher:\n  name: single\n  id: 3\n', 'searcher:\n  name: single\n  id: 7\n'],
    ['searcher: {name: single, metric: a}\n', 'searcher: {id: 7, name: single, metric: a}\n'],
    ['searcher: {name: single, id: 3}\n', 'searcher: {name: single, id: 7}\n'],
    ['name: x\n', 'name: x\nsearcher:\n  id: 7\n'],
    ['other:\n  searcher:\n    id: 1\nsearcher:\n  a: 1\n', 'other:\n  searcher:\n    id: 1\nsearcher:\n  id: 7\n  a: 1\n'],
  ];
  for (const [before, after] of cases) assert.equal(withKey(before, 'searcher', 'id', '7'), after);
});
