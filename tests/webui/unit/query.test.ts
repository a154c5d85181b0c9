// The query language of run tables: reading, printing, evaluation, the master's filter, completion.
import assert from 'node:assert/strict';
import test from 'node:test';
import { complete, isFiner, matcher, parse, print, toSearch, withKnownStates, withTests, QueryError } from '../../../webui-static/src/workbench/query';

const known = ['id', 'name', 'state', 'tags', 'startTime', 'duration', 'searcherMetricsVal', 'hp.lr', 'hp.opt.decay', 'hp.width', 'hp.<b>', 'validation.loss', 'training.loss'].map(
  (key) => ({ key, title: key === 'searcherMetricsVal' ? 'Best metric' : key }),
);
const canonical = (text: string): string => print(parse(text, known));
const mistake = (text: string): string => {
  try {
    parse(text, known);
    return '';
  } catch (cause) {
    assert.ok(cause instanceof QueryError);
    return `${cause.at}: ${cause.message}`;
  }
};

test('names stand for columns: hyperparameters, metrics, titles, other words, last parts', () => {
  assert.equal(canonical('lr < 1e-3 and state = running'), 'hp.lr < 1e-3 and state = running');
  assert.equal(canonical('decay>=0 metric > 0.9'), 'hp.opt.decay >= 0 and searcherMetricsVal > 0.9');
  assert.equal(canonical('loss < 1'), 'validation.loss < 1');
  assert.equal(canonical('label = good AND Started > 2026-11-01'), 'tags = good and startTime > 2026-11-01');
  assert.equal(canonical('hp.unseen = 3'), 'hp.unseen = 3');
});

test('and binds closer than or; parentheses, lists, emptiness and quotes are kept', () => {
  for (const text of [
    '(hp.lr < 1 or state = error) and name ~ "a b"',
    'hp.lr < 1 or (state = error and hp.width = 3)',
    'hp.width in (1, 2, "x y")',
    'tags is empty or name is not empty',
    '"hp.<b>" = "<img src=x>"',
    'name = "say \\"hi\\" \\\\"',
    'name = "and"',
    'mnist run 3',
    'nothing is called that',
  ])
    assert.equal(canonical(canonical(text)), canonical(text), text);
  assert.deepEqual(parse('lr < 1 or state = error and width = 3', known), parse('lr < 1 or (state = error and width = 3)', known));
  assert.equal(canonical('mnist run 3'), 'mnist run 3');
  assert.equal(canonical('"a and b"'), '"a and b"');
  assert.equal(parse('  ', known), undefined);
});

test('a printed text is read as this text', () => {
  for (const text of ['a and b', 'x=1', 'lr < 1', 'or', 'a  b', '"open', 'mnist (2)', 'mnist run 3', 'back\\slash'])
    assert.deepEqual(parse(print({ kind: 'text', text }), known), { kind: 'text', text }, text);
  assert.equal(print({ kind: 'text', text: 'x=1' }), '"x=1"');
});

test('a mistake is named with its place and, if there is one, the column that was meant', () => {
  assert.equal(mistake('name ~ a and widht > 3'), '13: There is no column “widht”. Did you mean width?');
  assert.equal(mistake('hp.lr <'), '7: Expected a value after “<”.');
  assert.equal(mistake('(hp.lr < 1'), '10: A closing parenthesis is missing.');
  assert.equal(mistake('name = "a'), '7: This quote is not closed.');
  assert.equal(mistake('hp.lr < 1)'), '9: Unexpected “)”.');
  assert.equal(mistake('and'), '0: Expected a column or a text.');
  assert.equal(mistake('hp.width in (1 2)'), '15: Expected a comma or a closing parenthesis.');
});

test('a query selects rows by numbers, texts, labels, times and emptiness', () => {
  const rows: Record<string, unknown>[] = [
    { id: 1, name: 'mnist wide', state: 'completed', tags: ['good'], 'hp.lr': 0.1, duration: 5400, startTime: '2026-11-02T00:00:00Z' },
    { id: 2, name: 'cifar', state: 'running', tags: [], 'hp.lr': 0.001, duration: 60, startTime: '2026-10-02T00:00:00Z' },
    { id: 3, name: 'mnist', state: 'error', tags: ['bad', 'good'], 'hp.lr': 'auto', duration: 90 },
  ];
  const found = (text: string): unknown[] =>
    rows.filter(matcher(parse(text, known), (row, column) => row[column] as never)).map(({ id }) => id);
  assert.deepEqual(found('lr < 0.01'), [2]);
  assert.deepEqual(found('lr = auto'), [3]);
  assert.deepEqual(found('lr != 0.1'), [2, 3]);
  assert.deepEqual(found('mnist'), [1, 3]);
  assert.deepEqual(found('2'), [2]);
  assert.deepEqual(found('tags = good and name !~ wide'), [3]);
  assert.deepEqual(found('state in (running, failed)'), [2, 3]);
  assert.deepEqual(found('state = active'), [2]);
  assert.deepEqual(found('duration > 1h'), [1]);
  assert.deepEqual(found('startTime > 2026-11-01'), [1]);
  assert.deepEqual(found('startTime is empty or tags is empty'), [2, 3]);
});

test('the master gets numbers as numbers, one text apart, and states that it stores', () => {
  const { text, condition } = toSearch(withKnownStates(parse('mnist lr < 0.1 and name = 7 and state in (running, queued, error)', known)));
  assert.equal(text, 'mnist');
  assert.deepEqual(condition, {
    kind: 'group',
    conjunction: 'and',
    children: [
      { kind: 'field', columnName: 'hp.lr', operator: '<', value: 0.1 },
      { kind: 'field', columnName: 'name', operator: '=', value: '7' },
      { kind: 'field', columnName: 'state', operator: '=', value: ['STATE_ACTIVE', 'STATE_ERROR'] },
    ],
  });
  assert.deepEqual(toSearch(undefined), { text: '', condition: undefined });
});

test('conditions of a brush replace those of their column only', () => {
  const query = parse('mnist and hp.lr < 1 and state = error', known);
  const next = withTests(query, ['hp.lr'], [{ kind: 'test', column: 'hp.lr', operator: '>=', values: ['0.1'] }]);
  assert.equal(print(next), 'mnist and state = error and hp.lr >= 0.1');
  assert.equal(print(withTests(parse('hp.lr < 1', known), ['hp.lr'], [])), '');
});

test('columns, operators, values and conjunctions complete what is typed', () => {
  const options = (text: string): string[] => complete(text, text.length, known, (column) => (column === 'state' ? ['active', 'error', 'a b'] : [])).options;
  assert.deepEqual(options('wid'), ['hp.width']);
  assert.ok(options('hp.width ').includes('>='));
  assert.deepEqual(options('state = e'), ['error', 'active']);
  assert.ok(options('state = ').includes('"a b"'));
  assert.deepEqual(options('state = error '), ['and', 'or']);
  assert.deepEqual(options('state = error and st'), ['state', 'startTime']);
  assert.deepEqual(options('"open'), []);
});

test('queued and running are told apart here; the master is asked for every row that may fit', () => {
  const asked = (text: string): string => print(withKnownStates(parse(text, known)));
  assert.equal(asked('state = running'), 'state = active');
  assert.equal(asked('state in (queued, error) and lr < 1'), 'state in (active, error) and hp.lr < 1');
  assert.equal(asked('state != running and lr < 1'), 'hp.lr < 1');
  assert.equal(asked('state != running or lr < 1'), '');
  assert.equal(asked('state != error'), 'state != error');
  assert.equal(isFiner(parse('lr < 1 and (state = queued or name ~ a)', known)), true);
  for (const text of ['state = active', 'state = error or lr < 1', 'running', '']) assert.equal(isFiner(parse(text, known)), false, text);
  const rows = ['running', 'queued', 'building', 'completed'].map((state) => ({ state }));
  const found = (text: string): string[] => rows.filter(matcher(parse(text, known), (row, column) => (column === 'state' ? row.state : undefined))).map(({ state }) => state);
  assert.deepEqual(found('state = queued'), ['queued']);
  assert.deepEqual(found('state != running'), ['queued', 'building', 'completed']);
  assert.deepEqual(found('state = active'), ['running', 'queued', 'building']);
});
