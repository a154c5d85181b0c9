// Small edits of a configuration's text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOfFirst, lineOf, withKey } from '../../../webui-static/src/yaml';

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

test('a key takes the place of one that it excludes', () => {
  const cases: [string, string][] = [
    ['searcher:\n  name: single\n  other: 3\n', 'searcher:\n  name: single\n  id: 7\n'],
    ['searcher: {name: single, other: 3, metric: a}\n', 'searcher: {name: single, id: 7, metric: a}\n'],
    ['searcher:\n  name: single\n  id: 3\n', 'searcher:\n  name: single\n  id: 7\n'],
    ['searcher:\n  another: 3\n', 'searcher:\n  id: 7\n  another: 3\n'],
  ];
  for (const [before, after] of cases) assert.equal(withKey(before, 'searcher', 'id', '7', 'other'), after);
});

test('a field is found at its line, one that is missing at what would hold it', () => {
  const text = [
    'name: x', // 1
    'description: |', // 2
    '  searcher: not this',
    'searcher:', // 4
    '  # why',
    '  name: single',
    '  metric: loss', // 7
    '  max_length: {batches: 5}', // 8
    'bind_mounts:', // 9
    '- host_path: /a', // 10
    '  container_path: /b', // 11
    '- host_path: /c', // 12
    'labels:', // 13
    '  - one',
    '  - two', // 15
    '"quoted": 1', // 16
    'hyperparameters:', // 17
    '  deep:',
    '    lr: 1', // 19
    'resources: {slots_per_trial: 0}', // 20
  ].join('\n');
  const cases: [string, number][] = [
    ['name', 1],
    ['searcher', 4],
    ['searcher.metric', 7],
    ['searcher.max_length.batches', 8],
    ['searcher.max_trials', 4],
    ['bind_mounts[0]', 10],
    ['bind_mounts[0].container_path', 11],
    ['bind_mounts[1].host_path', 12],
    ['labels[1]', 15],
    ['quoted', 16],
    ['hyperparameters.deep.lr', 19],
    ['hyperparameters.lr', 17],
    ['resources.slots_per_trial', 20],
    ['nowhere.to_be_found', 0],
    ['', 0],
  ];
  for (const [path, line] of cases) assert.equal(lineOf(text, path), line, path);
});

test('the first value of a mapping ends its line, in braces, below comments, or nowhere', () => {
  const before = (text: string): string => text.slice(0, endOfFirst(text, 'hyperparameters'));
  assert.equal(before('name: a\nhyperparameters:\n  lr: 0.1  \n  depth: 3\n'), 'name: a\nhyperparameters:\n  lr: 0.1');
  assert.equal(before('hyperparameters: {lr: 0.1}\nname: a\n'), 'hyperparameters: {lr: 0.1}');
  assert.equal(before('hyperparameters: # searched\n  # rate\n\n  lr: 0.1\n'), 'hyperparameters: # searched\n  # rate\n\n  lr: 0.1');
  assert.equal(before('name: hyperparameters\n'), 'name: hyperparameters\n');
});
