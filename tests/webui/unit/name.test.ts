// The parts of a name in a narrow place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parted } from '../../../webui-static/src/components/Name';

test('a long name keeps its last words, or its last characters; a short one is whole', () => {
  assert.deepEqual(parted('vit_imagenet100 batch 4096'), ['vit_imagenet100 ', 'batch 4096']);
  assert.deepEqual(parted('vit_imagenet100 distilled teacher'), ['vit_imagenet100 distilled ', 'teacher']);
  assert.deepEqual(parted('abcdefghijklmnopqrstuvwxyz'), ['abcdefghijklmnopqrs', 'tuvwxyz']);
  assert.deepEqual(parted('mnist'), ['mnist', '']);
});
