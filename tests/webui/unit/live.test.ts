// Rate limiting of reloads, and work without overlap.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Refresher } from '../../../webui-static/src/live';
import { once } from '../../../webui-static/src/work';

// Replaces setTimeout by timers that the test runs by hand, until `restore`.
function holdTimers() {
  const real = { set: globalThis.setTimeout, clear: globalThis.clearTimeout };
  const held = new Map<number, { work: () => void; ms: number }>();
  let next = 1;
  Object.assign(globalThis, {
    setTimeout: (work: () => void, ms: number) => {
      held.set(next, { work, ms });
      return next++;
    },
    clearTimeout: (id: number) => held.delete(id),
  });
  return {
    held,
    restore: () => Object.assign(globalThis, { setTimeout: real.set, clearTimeout: real.clear }),
  };
}

// A refresher with a manual clock. The test completes its runs by hand.
function setUp(gapMs: number) {
  const clock = { now: 0 };
  const runs: (() => Promise<void>)[] = [];
  const refresher = new Refresher(
    () =>
      new Promise<void>((resolve) => {
        runs.push(async () => {
          resolve();
          await new Promise((next) => setImmediate(next));
        });
      }),
    gapMs,
    () => clock.now,
  );
  return { clock, runs, refresher };
}

test('requests during a run are folded into one run after it', async () => {
  const { runs, refresher } = setUp(0);
  refresher.request();
  refresher.request();
  refresher.request();
  assert.equal(runs.length, 1);
  await runs[0]?.();
  assert.equal(runs.length, 2);
  await runs[1]?.();
  assert.equal(runs.length, 2);
});

test('requests between two beats run on the next one, and the last is not lost', async () => {
  const timers = holdTimers();
  try {
    const { clock, runs, refresher } = setUp(100);
    refresher.request();
    await runs[0]?.();
    clock.now = 30;
    refresher.request();
    refresher.request();
    assert.equal(runs.length, 1);
    assert.deepEqual(
      [...timers.held.values()].map(({ ms }) => ms),
      [70],
    );
    for (const { work } of timers.held.values()) work();
    assert.equal(runs.length, 2);
  } finally {
    timers.restore();
  }
});

test('refreshers with the same gap run together, whenever they began', async () => {
  const timers = holdTimers();
  try {
    for (const [began, asked, wait] of [[1900, 1950, 50], [2000, 2001, 1999], [2100.5, 2500.5, 1500], [3999.5, 5000, 0]] as const) {
      const { clock, runs, refresher } = setUp(2000);
      clock.now = began;
      refresher.request();
      await runs[0]?.();
      clock.now = asked;
      refresher.request();
      const waits = [...timers.held.values()].map(({ ms }) => ms);
      assert.deepEqual(wait === 0 ? runs.length : waits, wait === 0 ? 2 : [wait], `began at ${began}`);
      timers.held.clear();
    }
  } finally {
    timers.restore();
  }
});

test('a closed refresher runs no more', async () => {
  const timers = holdTimers();
  try {
    const { runs, refresher } = setUp(100);
    refresher.request();
    await runs[0]?.();
    refresher.request();
    assert.equal(timers.held.size, 1);
    refresher.close();
    assert.equal(timers.held.size, 0);
    refresher.request();
    assert.equal(runs.length, 1);
  } finally {
    timers.restore();
  }
});

test('a call while the work runs does not start it again', async () => {
  const ends: (() => void)[] = [];
  const work = once(() => new Promise<void>((resolve) => ends.push(resolve)));
  const both = [work(), work()];
  assert.equal(ends.length, 1);
  ends[0]?.();
  await Promise.all(both);
  void work();
  assert.equal(ends.length, 2);
});
