// Search of a configuration.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matching } from '../../../webui-static/src/components/ConfigView';

test('fields of a configuration are found by path and by value, in any case', () => {
  const config = { searcher: { name: 'single', max_length: { batches: 100 } }, labels: [], entrypoint: 'python Train.py' };
  assert.deepEqual(matching(config, 'max_len'), ['searcher.max_length.batches: 100']);
  assert.deepEqual(matching(config, 'TRAIN'), ['entrypoint: python Train.py']);
  assert.deepEqual(matching(config, 'single'), ['searcher.name: single']);
  assert.deepEqual(matching(null, 'a'), []);
});
