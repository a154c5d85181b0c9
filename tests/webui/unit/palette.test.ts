// The command palette: which entries fit a text, and numbers of objects.
import assert from 'node:assert/strict';
import test from 'node:test';
import { answered, distinct, found, keyOf, numbered, type Entry } from '../../../webui-static/src/palette';

const entry = (title: string, kind = 'Page'): Entry => ({ kind, title, to: `/${title}` });
const titles = (text: string, all: Entry[]): string[] => found(text, all).map(({ title }) => title);

test('entries need every word; a match at the start of the title comes first', () => {
  const all = [entry('Sign out', 'Action'), entry('Cluster: queue'), entry('Queue')];
  assert.deepEqual(titles('queue', all), ['Queue', 'Cluster: queue']);
  assert.deepEqual(titles('cluster QUEUE', all), ['Cluster: queue']);
  assert.deepEqual(titles('', all), ['Sign out', 'Cluster: queue', 'Queue']);
  assert.deepEqual(titles('nothing', all), []);
});

test('the kind of an entry is searched, too', () => {
  assert.deepEqual(titles('action', [entry('Sign out', 'Action'), entry('Users')]), ['Sign out']);
});

test('entries of the master for another text are shown as far as they fit', () => {
  const entries = [entry('mnist'), entry('cifar')];
  const shown = (text: string): string[] => answered(text, { text: 'i', entries }).map(({ title }) => title);
  assert.deepEqual([shown('i'), shown('mn'), shown('vit')], [['mnist', 'cifar'], ['mnist'], []]);
});

test('an entry is the same in another answer, and is listed once, with its name', () => {
  const numbered: Entry = { kind: 'Experiment', title: 'Experiment 12', to: '/experiments/12' };
  const named: Entry = { ...numbered, title: 'mnist', note: '12 · Completed' };
  const other: Entry = { kind: 'Action', title: 'Sign out' };
  assert.equal(keyOf(numbered), keyOf(named));
  assert.notEqual(keyOf(other), keyOf({ ...other, title: 'Dark theme' }));
  assert.deepEqual(distinct([numbered, other, named]), [named, other]);
});

test('a number names an experiment and a trial, a word before it one of them', () => {
  assert.deepEqual(numbered('12'), { experiment: 12, trial: 12 });
  assert.deepEqual([numbered('trial 7'), numbered('t7'), numbered('e 3')], [{ trial: 7 }, { trial: 7 }, { experiment: 3 }]);
  assert.deepEqual([numbered('0'), numbered('7b'), numbered('')], [{}, {}, {}]);
});
