// From metric groups to charts.
import assert from 'node:assert/strict';
import test from 'node:test';
import { panelName, toPanels } from '../../../webui-static/src/charts/series';
import type { MetricGroup } from '../../../webui-static/src/wire';

const panelsOf = (metrics: MetricGroup[]) => toPanels([{ trial: 1, startMs: 0, metrics }]);

test('validation_loss of the group validation is the loss', () => {
  assert.equal(panelName('validation', 'validation_loss'), 'loss');
  assert.equal(panelName('validation', 'val_accuracy'), 'accuracy');
  assert.equal(panelName('training', 'validation_loss'), 'validation_loss');
  assert.equal(panelName('validation', 'val_'), 'val_');
});

test('training and validation of one metric share a panel, training first', () => {
  const panels = panelsOf([
    { group: 'validation', data: [{ batches: 100, values: { validation_loss: 1, accuracy: 0.5 } }] },
    {
      group: 'training',
      data: [
        { batches: 50, values: { loss: 2 } },
        { batches: 100, values: { loss: 1.5 } },
      ],
    },
  ]);
  assert.deepEqual(panels, [
    {
      name: 'accuracy',
      series: [{ label: 'validation', group: 'validation', trial: 1, x: [100], y: [0.5], steps: [100] }],
    },
    {
      name: 'loss',
      series: [
        { label: 'training', group: 'training', trial: 1, x: [50, 100], y: [2, 1.5], steps: [50, 100] },
        { label: 'validation (validation_loss)', group: 'validation', trial: 1, x: [100], y: [1], steps: [100] },
      ],
    },
  ]);
});

test('values that are not finite are gaps, values that are no numbers are no series', () => {
  const panels = panelsOf([
    {
      group: 'training',
      data: [
        { batches: 1, values: { loss: 'NaN', note: 'text', nested: { a: 1 } } },
        { batches: 2, values: { loss: '-Infinity' } },
        { batches: 3, values: { loss: 0 } },
        { batches: 4, values: null },
      ],
    },
  ]);
  assert.equal(panels.length, 1);
  assert.deepEqual(panels[0]?.series[0]?.y, [null, null, 0]);
});
