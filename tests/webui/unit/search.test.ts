// Data of the search charts.
import assert from 'node:assert/strict';
import test from 'node:test';
import { bestOf, dimensions, isConstant, objective, position, ranks } from '../../../webui-static/src/charts/dimensions';
import { smooth, smoothCentered, stepsBetween, toPanels } from '../../../webui-static/src/charts/series';
import { atValidations, bestSoFar, citedIn, earlyText, farthest, fromBegin, inSight, lanes, lengthScale, reached, rungs, stageText, timeTicks, trialStages, wentOnEarly } from '../../../webui-static/src/search/lanes';
import type { JsonObject, Trial } from '../../../webui-static/src/wire';

const trial = (id: number, hparams: JsonObject, metric?: number, batches = 100, state = 'STATE_COMPLETED'): Trial =>
  ({ id, hparams, searcherMetricValue: metric, totalBatchesProcessed: batches, state }) as unknown as Trial;

test('only hyperparameters that differ are axes; type and range are those of the configuration', () => {
  const trials = [
    trial(1, { lr: 0.001, width: 96, act: 'relu', dropout: 0.001, same: 1, net: { depth: 2 } }),
    trial(2, { lr: 1, width: 384, act: 'gelu', dropout: 0.4, same: 1, net: { depth: 3 } }),
  ];
  const all = dimensions(trials, {
    lr: { type: 'log', base: 10, minval: -4, maxval: 0 },
    width: { type: 'categorical', vals: [96, 192, 384] },
    act: { type: 'categorical', vals: ['relu', 'gelu', 'tanh'] },
    dropout: { type: 'double', minval: 0, maxval: 0.5 },
    same: 1,
    net: { depth: { type: 'int', minval: 1, maxval: 4 } },
  });
  assert.deepEqual(
    all.map(({ name, kind, words, min, max }) => [name, kind, ...(kind === 'words' ? words : [Number(min.toPrecision(9)), max])]),
    [
      ['act', 'words', 'relu', 'gelu', 'tanh'],
      ['dropout', 'linear', 0, 0.5],
      ['lr', 'log', 0.0001, 1],
      ['net.depth', 'linear', 1, 4],
      ['width', 'words', '96', '192', '384'],
    ],
  );
  const lr = all[2];
  assert.ok(lr && Math.abs(position(lr, trial(3, { lr: 0.01 })) - 0.5) < 1e-12);
});

test('without a declaration the span of the numbers decides on their scale, and a value outside the range widens it', () => {
  const trials = [trial(1, { lr: 0.001 }), trial(2, { lr: 10 })];
  assert.deepEqual(dimensions(trials), [{ name: 'lr', kind: 'log', words: [], min: 0.001, max: 10 }]);
  const kind = (low: number, high: number) => dimensions([trial(1, { x: low }), trial(2, { x: high })])[0]?.kind;
  assert.deepEqual([kind(1, 9), kind(1, 10), kind(0, 10), kind(-1, 10)], ['linear', 'log', 'linear', 'linear']);
  const [lr] = dimensions(trials, { lr: { type: 'double', minval: 0, maxval: 1 } });
  assert.deepEqual([lr?.min, lr?.max], [0, 10]);
});

test('trials without a hyperparameter have no place on its axis and do not turn its numbers into words', () => {
  const trials = [trial(1, { dropout: 0.1, act: 'relu' }), trial(2, { dropout: 0.15000000000000002, act: 'gelu' }), trial(3, { pace: 3 })];
  const all = dimensions(trials);
  assert.deepEqual(
    all.map(({ name, kind, words, max }) => [name, kind, ...(kind === 'words' ? words : [max])]),
    [
      ['act', 'words', 'gelu', 'relu'],
      ['dropout', 'linear', 0.15000000000000002],
    ],
  );
  for (const one of all) assert.ok(trials.map((own) => Number.isNaN(position(one, own))).join() === 'false,false,true', one.name);
});

test('the objective is a dimension of the trials that have a metric', () => {
  assert.deepEqual(objective([trial(1, {}, 3), trial(2, {}), trial(3, {}, 1)], 'loss'), {
    name: 'loss',
    kind: 'linear',
    words: [],
    min: 1,
    max: 3,
  });
  assert.equal(objective([trial(1, {})], 'loss'), undefined);
});

test('ranks follow the better direction and leave out trials without a number', () => {
  const trials = [trial(1, {}, 3), trial(2, {}, 1), trial(3, {}), trial(4, {}, 2)];
  assert.deepEqual([...ranks(trials, true)], [
    [2, 0],
    [4, 0.5],
    [1, 1],
  ]);
  assert.equal(ranks(trials, false).get(1), 0);
  const equal = trials.map((one) => ({ ...one, searcherMetricValue: 1 }));
  assert.deepEqual([...new Set(ranks(equal, false).values())], [0.5]);
});

test('rungs are where trials ended', () => {
  const trials = [
    trial(1, {}, 3, 10),
    trial(2, {}, 2, 10),
    trial(3, {}, 1, 40),
    trial(4, {}, 9, 20, 'STATE_RUNNING'),
  ];
  assert.deepEqual(rungs(trials), [
    { batches: 10, reached: 4 },
    { batches: 40, reached: 1 },
  ]);
});

test('centered smoothing does not lag behind a line, and leaves gaps', () => {
  const line = Array.from({ length: 41 }, (_, at) => at);
  for (const at of [0, 20, 40]) assert.ok(Math.abs((smoothCentered(line, 0.8)[at] ?? NaN) - at) < 1e-9);
  assert.deepEqual(smoothCentered([7], 0.8), [7]);
  // Single lines are 0.29 below the first value of this curve, and 0.13 above the seventh.
  const bent = Array.from({ length: 40 }, (_, at) => 0.5 + 2 * Math.exp(-at / 6));
  assert.ok(Math.abs((smoothCentered(bent, 0.8)[0] ?? 9) - (bent[0] ?? 0)) < 0.2, 'a curve that bends');
  assert.ok(Math.abs((smoothCentered(bent, 0.8)[6] ?? 9) - (bent[6] ?? 0)) < 0.1);
  assert.ok((smooth(line, 0.8)[20] ?? 0) < 17);
  assert.deepEqual(smoothCentered([5, null, 5], 0.5), [5, null, 5]);
});

test('centered smoothing of a long curve begins with its first values', () => {
  const curve = Array.from({ length: 400 }, (_, at) => 0.4 + 2 * Math.exp(-at / 13) + (at % 2) / 20);
  const smoothed = smoothCentered(curve, 0.95);
  curve.forEach((value, at) => assert.ok(Math.abs((smoothed[at] ?? 9) - value) < 0.12, `${at}`));
  assert.ok(Math.abs((smoothed[300] ?? 0) - (smoothed[301] ?? 0)) < 0.005);
  assert.deepEqual(smoothCentered([7, null, 7], 0.95), [7, null, 7]);
});

test('centered smoothing does not follow the last value of a noisy curve', () => {
  const noisy = Array.from({ length: 40 }, (_, at) => (at === 39 ? 2 : at % 2));
  assert.ok((smoothCentered(noisy, 0.8)[39] ?? 9) < 1.2);
});

test('smoothing starts at the first value, keeps a constant and leaves gaps', () => {
  assert.deepEqual(smooth([5, 5, null, 5], 0.9), [5, 5, null, 5]);
  const [first, second] = smooth([0, 1], 0.5);
  assert.equal(first, 0);
  assert.ok(Math.abs((second ?? 0) - 2 / 3) < 1e-12);
});

test('on the axis of time a trial starts at zero; a stretch of it is a stretch of batches', () => {
  const loss = {
    trialId: 7,
    group: 'training',
    name: 'loss',
    firstTime: new Date(1001000).toISOString(),
    batches: [10, 10, 10],
    values: [10, 20, 30],
    milliseconds: [0, 1000, 7000],
  };
  const source = { trial: 7, startMs: 1000000, metrics: [loss] };
  const [panel] = toPanels([source], 'time');
  assert.deepEqual(panel?.series[0]?.x, [1, 2, 9]);
  assert.deepEqual(panel && stepsBetween(panel, 0.5, 3), [10, 20]);
  assert.equal(panel && stepsBetween(panel, 3, 4), undefined);
  assert.deepEqual(toPanels([source], 'epochs'), []);
});

test('series of several trials are told by the trial', () => {
  const metrics = [{ trialId: 1, group: 'training', name: 'loss', batches: [1], values: [1], milliseconds: [0] }];
  const [panel] = toPanels([
    { trial: 2, name: 'trial 2', startMs: 0, metrics },
    { trial: 1, name: 'trial 1', startMs: 0, metrics },
  ]);
  assert.deepEqual(
    panel?.series.map((one) => one.label),
    ['trial 2 · training', 'trial 1 · training'],
  );
});

test('a search is drawn a bracket each, with the rungs that were planned; one without brackets whole', () => {
  const trials = [trial(1, {}, 3, 10), trial(2, {}, 2, 40), trial(3, {}, 1, 90, 'STATE_RUNNING')];
  const all = lanes(
    {
      timeMetric: 'batches',
      brackets: [
        { rungs: [{ length: 10, trials: 2 }, { length: 30, trials: 1 }], maxTrials: 9, trialIds: [1, 2, 77] },
        { rungs: [{ length: 90, trials: 1 }], maxTrials: 3, trialIds: [3] },
      ],
    },
    trials,
  );
  assert.deepEqual(
    all.map((lane) => [lane.title, lane.trials.map((one) => one.id), lane.rungs]),
    [
      ['Schedule 1 of 2', [1, 2], [{ length: 10, came: 2, wentOn: 1 }, { length: 30, came: 1, wentOn: undefined }]],
      ['Schedule 2 of 2', [3], [{ length: 90, came: 1, wentOn: undefined }]],
    ],
  );
  // A stage is where its trials were compared: at the first validation that was long enough.
  const [first, second] = all.map((lane) => atValidations(lane, [[4, 12, 24], [6, 14]]).rungs.map(({ length }) => length));
  assert.deepEqual([first, second], [[12, 30], [90]]);
  const [whole] = lanes({ timeMetric: 'batches', brackets: [] }, trials);
  assert.deepEqual(whole?.rungs, [
    { length: 10, came: 3, wentOn: 2 },
    { length: 40, came: 2, wentOn: undefined },
  ]);
  assert.deepEqual(bestOf(trials, true), { id: 3, value: 1 });
  assert.deepEqual(bestOf([trial(4, {})], false), undefined);
  assert.deepEqual(farthest(trials, 2).map((one) => one.id), [2, 3]);
});

test('a trial has the stage that it trains for, or at which it was stopped', () => {
  const of = (id: number, state: string, totalBatchesProcessed: number, epochs?: number) =>
    ({ ...trial(id, {}), state, totalBatchesProcessed, latestValidation: { metrics: { avgMetrics: { epochs } } } }) as unknown as Trial;
  const bracket = { rungs: [10, 30, 90].map((length) => ({ length, trials: 1 })), maxTrials: 9, trialIds: [1, 2, 3, 4, 77] };
  const trials = [of(1, 'STATE_COMPLETED', 12, 30), of(2, 'STATE_RUNNING', 12, 5), of(3, 'STATE_COMPLETED', 90), of(4, 'STATE_ERROR', 0), of(5, 'STATE_RUNNING', 0)];
  const texts = (timeMetric: string): string[] => [...trialStages({ timeMetric, brackets: [bracket] }, trials)].map(([id, stage]) => `${id}: ${stageText(stage)}`);
  assert.deepEqual(texts('batches'), ['1: Stopped at stage 1 of 3, 10 batches', '2: Stage 2 of 3, 30 batches', '3: Stage 3 of 3, 90 batches', '4: Stage 1 of 3, 10 batches']);
  assert.deepEqual(texts('epochs').slice(0, 2), ['1: Stopped at stage 2 of 3, 30 epochs', '2: Stage 1 of 3, 10 epochs']);
  assert.deepEqual(trialStages({ timeMetric: '', brackets: [] }, trials).size, 0);
  const two = trialStages({ timeMetric: 'batches', brackets: [{ ...bracket, trialIds: [1] }, { ...bracket, trialIds: [3] }] }, trials);
  assert.deepEqual([...two.values()].map(({ schedule, schedules }) => [schedule, schedules]), [[1, 2], [2, 2]]);
});

test('a search names the trials that went on before better ones reported, and these better ones', () => {
  const done = (id: number) => ({ ...trial(id, {}), state: 'STATE_COMPLETED' }) as Trial;
  const lane = { title: '', trials: [1, 2, 3, 4].map(done), maxTrials: 4, rungs: [{ length: 10, came: 4, wentOn: 2 }, { length: 30, came: 2, wentOn: undefined }] };
  const at = (length: number, seconds: number, value?: number) => ({ length, seconds, value });
  const reports: Record<number, ReturnType<typeof at>[]> = {
    1: [at(0, 0), at(10, 1, 0.5), at(20, 2, 0.6), at(30, 3, 0.7)],
    2: [at(10, 5, 0.6), at(14, 6, 0.65)],
    3: [at(12, 6, 0.9), at(30, 9, 0.9)],
    4: [at(10, 0.5, 0.4)],
  };
  const of = (smallerIsBetter: boolean, running: readonly number[] = []) =>
    wentOnEarly({ ...lane, trials: lane.trials.map((one) => (running.includes(one.id) ? { ...one, state: 'STATE_RUNNING' } : one)) }, ({ id }) => reports[id] ?? [], smallerIsBetter);
  assert.deepEqual(of(false), [{ stage: 1, id: 1, before: [2] }]);
  assert.deepEqual(of(false, [2]), [], 'the better one may go on yet');
  assert.deepEqual(of(true), [], 'the better one reported before');
  const all = (...early: [stage: number, id: number, before: number[]][]) => early.map(([stage, id, before]) => ({ stage, id, before }));
  const text = (...early: Parameters<typeof all>): string => earlyText(all(...early));
  assert.equal(earlyText(of(false)), 'Stage 1: trial 2 was stopped although it was better than 1, which reported earlier.');
  assert.equal(
    text([1, 23, [54, 27]], [1, 25, [27]], [2, 26, [58]]),
    'Stage 1: trials 27 and 54 were stopped although they were better than 23 or 25, which reported earlier. Stage 2: trial 58 was stopped although it was better than 26, which reported earlier.',
  );
  assert.equal(text(...[1, 2, 3, 4].map((id): [number, number, number[]] => [1, id, [5, 6, 7, 8]])), 'Stage 1: 4 trials were stopped although they were better than 4 others, which reported earlier.');
  assert.deepEqual(citedIn(all([1, 23, [54, 27]], [1, 25, [27]])), [23, 25, 27, 54]);
  assert.deepEqual(citedIn(all([1, 23, [5, 6, 7, 8]])), [23], 'trials that the text counts have no label');
});

test('how far a trial had come is told by the metric that the search counts in', () => {
  assert.equal(reached({ batches: 7, values: { tokens: 500 } }, 'batches'), 7);
  assert.equal(reached({ batches: 7, values: { tokens: 500 } }, 'tokens'), 500);
  assert.equal(reached({ batches: 7, epoch: 2 }, 'epochs'), 2);
  assert.equal(reached({ batches: 7, values: {} }, 'tokens'), undefined);
});

test('the line of a trial begins when its training did, not when the trial was created', () => {
  const reports = [{ length: 100, seconds: 50 }, { length: 200, seconds: 60 }];
  assert.deepEqual(fromBegin(reports, 5)[0], { length: 0, seconds: 40 });
  assert.deepEqual(fromBegin(reports, 45)[0], { length: 0, seconds: 45 });
  assert.deepEqual(fromBegin(reports.slice(0, 1), 5), [{ length: 0, seconds: 5 }, { length: 100, seconds: 50 }]);
  assert.deepEqual(fromBegin([], 5), [{ length: 0, seconds: 5 }]);
  assert.deepEqual(fromBegin([{ length: 100, seconds: 4 }], 9)[0], { length: 0, seconds: 4 });
});

test('the best value so far is better than all before it, of any trial', () => {
  const at = (seconds: number, value?: number) => ({ seconds, value });
  const values = [at(30, 0.7), at(10, 0.5), at(20, 0.4), at(5), at(NaN, 9), at(40, 0.7), at(50, 0.9)];
  assert.deepEqual(bestSoFar(values, false), [at(10, 0.5), at(30, 0.7), at(50, 0.9)]);
  assert.deepEqual(bestSoFar(values, true), [at(10, 0.5), at(20, 0.4)]);
  assert.deepEqual(bestSoFar([], true), []);
});

test('a range whose ends read the same is constant', () => {
  const constant = (min: number, max: number): boolean => isConstant({ kind: 'linear', min, max });
  assert.ok(constant(0.999999997, 0.999999999) && constant(0.9999999, 1) && constant(0, 0) && constant(-1.0000001, -1));
  assert.ok(!constant(0.9999, 1) && !constant(0, 1e-9) && !constant(1000001, 1000003) && !constant(-1, 1));
  assert.deepEqual([...new Set(ranks([trial(1, {}, 0.9999999), trial(2, {}, 1)], false).values())], [0.5]);
});

test('the axis of lengths is linear for near rungs and logarithmic for others', () => {
  const near = lengthScale([40, 80], [60]);
  assert.deepEqual([near.isLog, near.longest, near.part(40), near.part(80)], [false, 80, 0.5, 1]);
  const far = lengthScale([1, 4, 16, 64], []);
  const parts = [0, 0.5, 1, 64].map((length) => Number(far.part(length).toFixed(3)));
  assert.deepEqual([far.isLog, ...parts], [true, 0, 0, 0.143, 1]);
  assert.equal(lengthScale([], [10]).isLog, false);
});

test('the metric over time shows the range of the last values, unless that gains little', () => {
  const line = (...values: number[]) => values.map((value, at) => ({ length: at, seconds: at, value }));
  assert.deepEqual(inSight([line(0, 0.5, 0.8), line(0.1, 0.6)], [{ seconds: 2, value: 0.9 }], true), { min: 0.6, max: 0.9, isCropped: true });
  assert.deepEqual(inSight([line(0, 0.5, 0.8), line(0.1, 0.6)], [], false), { min: 0, max: 0.8, isCropped: false });
  assert.deepEqual(inSight([line(0, 0.5, 0.8), line(0.1, 0.2)], [], true), { min: 0, max: 0.8, isCropped: false }, 'it would gain little');
  assert.deepEqual(inSight([line(0, 0.8)], [], true), { min: 0, max: 0.8, isCropped: false }, 'one line');
  assert.equal(inSight([line()], [], true), undefined);
});

test('times on an axis are round', () => {
  assert.deepEqual(timeTicks(3.2, 6), [0, 1, 2, 3]);
  assert.deepEqual(timeTicks(100, 6), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(timeTicks(4 * 86400, 2), [0, 172800, 345600]);
  assert.deepEqual(timeTicks(1, 1), [0, 1]);
});
