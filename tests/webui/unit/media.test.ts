// Media: the entry of a step, and contents in memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Media } from '../../../webui-static/src/calls/media';
import { Contents, Recent } from '../../../webui-static/src/media/contents';
import { arranged, lastAtMost } from '../../../webui-static/src/media/steps';
import { cornerOf, distinct, GAP, LABEL, tiled, within } from '../../../webui-static/src/media/tiles';

const entry = (trialId: number, name: string, step: number): Media => ({
  trialId,
  name,
  step,
  kind: 'KIND_TEXT',
  caption: '',
  digest: `${trialId}${name}${step}`,
  size: 1,
  fileName: 'text.txt',
});

test('names that most trials have come first', () => {
  assert.deepEqual(arranged([entry(1, 'a', 1), entry(1, 'a', 2), entry(1, 'b', 1), entry(2, 'b', 1), entry(2, 'c', 1)]).names, ['b', 'a', 'c']);
});

test('an entry of a step is the newest one that is not later', () => {
  const steps = arranged([entry(1, 'b', 20), entry(1, 'b', 5), entry(2, 'a', 10)]);
  assert.deepEqual(steps.steps, [5, 10, 20]);
  assert.deepEqual(steps.names, ['a', 'b']);
  assert.equal(steps.at(1, 'b', 4), undefined);
  assert.equal(steps.at(1, 'b', 5)?.step, 5);
  assert.equal(steps.at(1, 'b', 19)?.step, 5);
  assert.equal(steps.at(1, 'b', 1000)?.step, 20);
  assert.equal(steps.at(2, 'b', 20), undefined);
  assert.equal(steps.at(1, 'a', 20), undefined);
});

test('the last number at most a limit is found in any list', () => {
  for (const numbers of [[], [3], [1, 3, 3, 9], [0, 2, 4, 6, 8]])
    for (let limit = -1; limit < 11; limit++)
      assert.equal(lastAtMost(numbers.length, (at) => numbers[at] ?? 0, limit), numbers.filter((one) => one <= limit).length - 1);
});

test('values beyond the limit are dropped, the least recently used first', () => {
  const recent = new Recent<string>(10);
  recent.set('a', 'A', 4);
  recent.set('b', 'B', 4);
  assert.equal(recent.get('a'), 'A');
  recent.set('c', 'C', 4);
  assert.equal(recent.has('b'), false);
  assert.equal(recent.get('a'), 'A');
  recent.set('a', 'A2', 2);
  assert.equal(recent.full(), false);
  recent.set('large', 'L', 100);
  assert.deepEqual(['a', 'c', 'large'].map((key) => recent.has(key)), [false, false, true]);
});

test('a part of the limit has room for values of average weight', () => {
  const recent = new Recent<string>(100);
  assert.equal(recent.room(0.5), Infinity);
  recent.set('a', 'A', 4);
  recent.set('b', 'B', 6);
  assert.equal(recent.room(0.5), 10);
  recent.clear();
  assert.equal(recent.has('a'), false);
});

test('entries around a step come nearest first, the earlier one of two equally near', () => {
  const steps = arranged([entry(1, 'a', 10), entry(1, 'a', 20), entry(2, 'a', 20), entry(1, 'a', 30), entry(1, 'a', 35), entry(1, 'a', 90)]);
  const near = (step: number, limit: number) => steps.around(new Set([1]), step, limit).map((one) => one.step);
  assert.deepEqual(near(25, 9), [20, 30, 35, 10, 90]);
  assert.deepEqual(near(25, 2), [20, 30]);
  assert.deepEqual(near(1, 2), [10, 20]);
  assert.deepEqual(near(100, 2), [90, 35]);
  assert.deepEqual(steps.around(new Set(), 25, 9), []);
});

test('names with images only are known as such', () => {
  const image = { ...entry(1, 'pictures', 1), kind: 'KIND_IMAGE' as const };
  const mixed = { ...entry(1, 'both', 1), kind: 'KIND_IMAGE' as const };
  assert.deepEqual([...arranged([image, mixed, entry(1, 'both', 2), entry(1, 'texts', 1)]).images], ['pictures']);
});

test('tiles fit into the width, and into the height if any size does', () => {
  for (const count of [1, 2, 9, 100, 200])
    for (const width of [240, 390, 1200])
      for (const room of [200, 600, 900]) {
        const found = tiled(count, width, room);
        assert.ok(found.columns >= 1 && found.side >= 56 && found.side <= 240);
        assert.ok(found.columns * (found.side + GAP) - GAP <= width, `${count} in ${width}`);
        const last = cornerOf(found, count - 1);
        assert.equal(last.y + found.side + LABEL, found.height);
        if (found.height > room) assert.ok(found.side < 128, 'only small tiles may be higher than the room');
      }
  assert.ok(tiled(100, 1200, 580).height <= 580);
});

test('an image fills its tile or is centered in it', () => {
  const tiling = { columns: 2, side: 100, height: 0 };
  assert.deepEqual(within(tiling, 0, 25, 25), { x: 0, y: 0, width: 100, height: 100 });
  assert.deepEqual(within(tiling, 3, 200, 100), { x: 108, y: 153, width: 100, height: 50 });
});

test('names on tiles leave out the words that all of them begin with', () => {
  assert.deepEqual(distinct(['trial 720', 'trial 721']), ['720', '721']);
  assert.deepEqual(distinct(['vit lr=0.1', 'vit lr=0.3']), ['lr=0.1', 'lr=0.3']);
  assert.deepEqual(distinct(['vit', 'vit long']), ['vit', 'vit long']);
  assert.deepEqual(distinct(['seed 1']), ['seed 1']);
  assert.deepEqual(distinct(['same', 'same']), ['same', 'same']);
  assert.deepEqual(distinct([]), []);
});

// Contents with a master that answers by `respond`; ends when nothing is loaded any more.
async function loaded(contents: Contents, wanted: Media[], respond: (digests: string[]) => Response | Promise<Response>): Promise<string[][]> {
  const real = globalThis.fetch;
  const asked: string[][] = [];
  Object.assign(globalThis, { requestAnimationFrame: (work: () => void) => work() });
  globalThis.fetch = async (_, init) => {
    const { digests } = JSON.parse(String(init?.body));
    asked.push(digests);
    return respond(digests);
  };
  contents.want(wanted, []);
  while (contents.busy()) await new Promise((next) => setImmediate(next));
  globalThis.fetch = real;
  return asked;
}

const [one, two, three] = [1, 2, 3].map((step) => entry(1, 'a', step)) as [Media, Media, Media];
const texts = (digests: string[]): Response => new Response(JSON.stringify({ contents: digests.map(() => btoa('text')) }));

test('only the content that cannot be loaded is marked', async () => {
  const contents = new Contents(() => {});
  const asked = await loaded(contents, [one, two, three], (digests) => (digests.includes(two.digest) ? new Response('{}', { status: 404 }) : texts(digests)));
  assert.equal(asked.length, 4);
  assert.deepEqual([one, two, three].map(({ digest }) => contents.error(digest) !== undefined), [false, true, false]);
  assert.equal(contents.of(three.digest)?.length, 4);
  contents.close();
});

test('contents are requested again after the master was out of reach', async () => {
  const contents = new Contents(() => {});
  for (const fail of [() => Promise.reject(new TypeError('lost')), () => new Response('', { status: 503 })]) {
    assert.equal((await loaded(contents, [one, two], fail)).length, 1);
    assert.deepEqual([one, two].map(({ digest }) => contents.error(digest)), [undefined, undefined]);
  }
  await loaded(contents, [one, two], texts);
  assert.equal(contents.of(two.digest)?.length, 4);
  contents.close();
});
