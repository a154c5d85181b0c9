// Notifications about experiments that have ended.
import assert from 'node:assert/strict';
import test from 'node:test';
import { alertOf } from '../../../webui-static/src/alerts';
import type { Experiment } from '../../../webui-static/src/wire';

const NOW = Date.parse('2026-01-02T10:00:00Z');
const experiment = (own: Partial<Experiment>): Experiment =>
  ({
    id: 7,
    name: 'vit',
    state: 'STATE_COMPLETED',
    username: 'mira',
    startTime: '2026-01-02T09:00:00Z',
    endTime: '2026-01-02T09:59:50Z',
    searcherMetric: 'accuracy',
    bestTrialSearcherMetric: 0.9125,
    ...own,
  }) as Experiment;

test('an experiment that has just ended names its state, its metric and its duration', () => {
  assert.deepEqual(alertOf(experiment({}), 'mira', NOW), { title: 'vit: Completed', body: 'best accuracy 0.9125 · 59m 50s' });
});

test('a failed experiment without a name or a metric is told, too', () => {
  const failed = experiment({ name: '', state: 'STATE_ERROR', bestTrialSearcherMetric: null });
  assert.deepEqual(alertOf(failed, 'mira', NOW), { title: 'Experiment 7: Error', body: '59m 50s' });
});

test('experiments of others, running ones and those that ended earlier are no alerts', () => {
  assert.equal(alertOf(experiment({}), 'noor', NOW), undefined);
  assert.equal(alertOf(experiment({ state: 'STATE_RUNNING' }), 'mira', NOW), undefined);
  assert.equal(alertOf(experiment({ endTime: '2026-01-02T09:50:00Z' }), 'mira', NOW), undefined);
  assert.equal(alertOf(experiment({ endTime: null }), 'mira', NOW), undefined);
});
