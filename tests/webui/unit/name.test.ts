// The parts of a name in a narrow place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parted, shortened } from '../../../webui-static/src/components/Name';

test('a long name keeps its last words, or its last characters; a short one is whole', () => {
  assert.deepEqual(parted('vit_imagenet100 batch 4096'), ['vit_imagenet100 ', 'batch 4096']);
  assert.deepEqual(parted('vit_imagenet100 distilled teacher'), ['vit_imagenet100 distilled ', 'teacher']);
  assert.deepEqual(parted('abcdefghijklmnopqrstuvwxyz'), ['abcdefghijklmnopqrs', 'tuvwxyz']);
  assert.deepEqual(parted('mnist'), ['mnist', '']);
});

test('a shortened name has one ellipsis, beside neither spaces nor dots', () => {
  const inRoom = (text: string, room: number, end = parted(text)[1]): string => shortened(text, end, room, (from, to) => to - from, 1);
  assert.equal(inRoom('clicked with a long name and warmup 500', 20), 'clicked w…warmup 500');
  assert.equal(inRoom('clicked with a long name and warmup 500', 24), 'clicked with…warmup 500');
  assert.equal(inRoom('renamed <img onerror="window.pwned=1">', 20), 'renamed <i…pwned=1">');
  assert.equal(inRoom('hyperparameters.learning_rate.val', 20), 'hyperparame…rate.val');
  assert.equal(inRoom('environment.environment_variables.cpu', 14), 'environmen…cpu');
  assert.equal(inRoom('vit_imagenet100 batch 4096', 9), 'vit_imag…', 'without room for both parts the end goes');
});
