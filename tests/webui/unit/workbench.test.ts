// Groups, order and selection of runs; outcomes; brushes; bands of groups.
import assert from 'node:assert/strict';
import test from 'node:test';
import { toBands, whole } from '../../../webui-static/src/charts/bands';
import { brushed, brushTests } from '../../../webui-static/src/charts/brush';
import { front, history, points, readGoals, writeGoals, type Goal } from '../../../webui-static/src/charts/outcomes';
import type { Dimension } from '../../../webui-static/src/charts/dimensions';
import type { Series } from '../../../webui-static/src/charts/series';
import { available, column, DEFAULT_COLUMNS, usualColumns, withBest, type Column } from '../../../webui-static/src/workbench/columns';
import { deviationText, groupsOf, inGroups, rangeText, searchesByBest, sizeText, spread, spreadText } from '../../../webui-static/src/workbench/groups';
import { matcher, parse } from '../../../webui-static/src/workbench/query';
import { inOrder, ofTrial, shownState, STOPPED_EARLY, valueOf, type Run } from '../../../webui-static/src/workbench/runs';
import { runColor, seedsOf } from '../../../webui-static/src/colors';
import { readSeeds, usualSeeds, withShown } from '../../../webui-static/src/workbench/runColors';
import { targetOf, targetTitle, timeLeft, trialsText } from '../../../webui-static/src/workbench/target';
import { drawnRuns, flipDrawn, outside, withRows } from '../../../webui-static/src/workbench/selection';
import type { Experiment, JsonObject, Trial } from '../../../webui-static/src/wire';

const trial = (id: number, hparams: JsonObject, metric?: number, more: object = {}): Trial =>
  ({ id, hparams, searcherMetricValue: metric, state: 'STATE_COMPLETED', ...more }) as unknown as Trial;
const run = (id: number, hparams: JsonObject, metric?: number): Run => ofTrial({ trialIds: [], labels: [] } as unknown as Experiment, trial(id, hparams, metric));

test('runs with equal values are a group; its numbers have a mean and a deviation', () => {
  const runs = [run(1, { act: 'relu', lr: 1 }, 2), run(2, { act: 'gelu', lr: 1 }), run(3, { act: 'relu', lr: 1 }, 4), run(4, { lr: 1 }, 9)];
  const groups = groupsOf(runs, ['hp.act', 'hp.lr']);
  assert.deepEqual(groups.map(({ tag }) => tag), ['relu 1', 'gelu 1', 'not set 1']);
  assert.deepEqual(groups.map(({ label, runs: own }) => [label, own.map(({ id }) => id)]), [
    ['act = relu, lr = 1', [1, 3]],
    ['act = gelu, lr = 1', [2]],
    ['act = not set, lr = 1', [4]],
  ]);
  assert.deepEqual(spread(groups[0]?.runs ?? [], 'searcherMetricsVal'), { count: 2, mean: 3, deviation: Math.SQRT2 });
  assert.equal(spread(groups[1]?.runs ?? [], 'searcherMetricsVal'), undefined);
  assert.deepEqual(spread(groups[2]?.runs ?? [], 'searcherMetricsVal'), { count: 1, mean: 9, deviation: 0 });
  assert.deepEqual(groupsOf(runs, []), []);
  const ongoing = { ...run(5, { act: 'relu' }, 1), state: 'STATE_RUNNING' };
  assert.equal(spread([...runs, ongoing], 'searcherMetricsVal')?.count, 3, 'a run that has not ended counts only without one that has');
  assert.equal(spread([ongoing], 'searcherMetricsVal')?.mean, 1);
});

test('a group by a hyperparameter says how many searches are in it by their best trial', () => {
  const search = { ...run(1, { act: 'relu' }, 2), kind: 'experiment', experiment: { numTrials: 24 } } as unknown as Run;
  const single = { ...search, id: 2, experiment: { numTrials: 1 } } as unknown as Run;
  const count = (columns: string[]): number[] => groupsOf([search, single], columns).map(searchesByBest);
  assert.deepEqual(count(['hp.act']), [1]);
  assert.deepEqual(count(['kind']), [0]);
  const text = (runs: Run[], hasRoom = true, byHyperparameter = true): string => sizeText({ runs, byHyperparameter }, { key: 'id' }, hasRoom);
  assert.equal(text([search, single]), 'mean of 2 (one search)');
  assert.equal(text([search, search, single]), 'mean of 3 (2 searches)');
  assert.equal(text([search]), '1 (one search)');
  assert.equal(text([search, single], true, false), 'mean of 2');
  assert.equal(text([search, single], false), 'mean of 2');
  assert.equal(text([search], false), '×1');
  const ongoing = { ...search, id: 9, state: 'STATE_RUNNING' } as Run;
  assert.equal(text([search, single, ongoing]), 'mean of 2 ended (one search)');
  assert.equal(text([search, single, ongoing], false), 'mean of 2/3');
  assert.equal(text([ongoing, ongoing]), 'mean of 2 (2 searches)');
});

test('a row of a group has the range of a hyperparameter, and room for it', () => {
  const runs = [run(1, { act: 'relu', lr: 0.0003 }), run(2, { act: 'relu', lr: 0.003 }), run(3, { act: 'gelu', lr: 0.001 }), run(4, { act: 'none' })];
  const groups = groupsOf(runs, ['hp.act']);
  assert.deepEqual(groups.map((group) => rangeText(group.runs, { key: 'hp.lr' })), ['0.0003–0.003', '0.001', '']);
  const places = (value: number): string => value.toFixed(3);
  assert.deepEqual(groups.map((group) => rangeText(group.runs, { key: 'hp.lr', text: places })), ['0.0003–0.003', '0.001', ''], 'no value is rounded to 0');
  const fine = [run(1, { dropout: 0.025849 }), run(2, { dropout: 0.4763 })];
  assert.equal(rangeText(fine, { key: 'hp.dropout', text: places }), '0.026–0.476');
  const of = (key: string): Column => ({ ...(column(key, 'trial') as Column), width: 60 });
  assert.equal(inGroups(of('hp.lr'), groups).inGroup, 'range');
  assert.ok(inGroups(of('hp.lr'), groups).width > 8 * '0.0003–0.003'.length);
  assert.equal(inGroups(of('searcherMetricsVal'), groups).inGroup, 'mean');
  assert.equal(inGroups(of('id'), groups).inGroup, undefined);
  assert.equal(inGroups(of('hp.lr'), []).width, 60);
});

test('the pointer on a value of a group shows its runs, least, median and greatest value', () => {
  const runs = [0.5, 0.25, 1, undefined].map((value, at) => run(at + 1, {}, value));
  const text = (own: Run[]): string => spreadText(own, { key: 'searcherMetricsVal', text: (value) => value.toFixed(2) });
  assert.equal(text(runs), '3 of 4 runs · mean 0.58 ± 0.38 · min 0.25 · median 0.50 · max 1.00');
  assert.equal(text(runs.slice(0, 2)), '2 runs · mean 0.38 ± 0.18 · min 0.25 · median 0.38 · max 0.50');
  assert.equal(text(runs.slice(0, 1)), '1 run · mean 0.50 · min 0.50 · median 0.50 · max 0.50');
  assert.equal(text(runs.slice(3)), '');
});

test('groups show durations and sizes with their units, and no mean of ids', () => {
  const of = (id: number, seconds: number, size: number): Run => {
    const startTime = '2026-11-02T00:00:00Z';
    const endTime = new Date(Date.parse(startTime) + 1000 * seconds).toISOString();
    return ofTrial({ trialIds: [], labels: [] } as unknown as Experiment, trial(id, {}, 0, { startTime, endTime, totalCheckpointSize: size }));
  };
  const runs = [of(1, 3600, 1e9), of(2, 3900, 3e9)];
  const text = (key: string): string => spreadText(runs, column(key, 'trial') as Column);
  assert.equal(text('duration'), '2 runs · mean 1h 02m ± 3m 32s · min 1h 00m · median 1h 02m · max 1h 05m');
  assert.equal(text('checkpointSize'), '2 runs · mean 2.0 GB ± 1.4 GB · min 1.0 GB · median 2.0 GB · max 3.0 GB');
  const forked = column('forkedFrom') as Column;
  assert.equal(inGroups(forked, groupsOf(runs, ['state'])), forked);
});

test('trials of a search by halving have a column of stages, and one of schedules if there are several; others have none', () => {
  const stage = { at: 1, of: 3, length: 10, unit: 'batches', isStopped: true, schedule: 1, schedules: 1 };
  const staged = { ...run(1, {}, 1), stage };
  const both = (runs: Run[], kind: 'trial' | 'experiment' = 'trial'): boolean[] => ['stage', 'schedule'].map((key) => available(runs, kind).includes(key));
  assert.deepEqual([both([staged]), both([run(1, {})]), both([staged], 'experiment')], [[true, false], [false, false], [false, false]]);
  const second = { ...staged, stage: { ...stage, schedule: 2, schedules: 2 } };
  assert.deepEqual(both([second]), [true, true]);
  assert.deepEqual([valueOf(staged, 'stage'), valueOf(second, 'schedule')], ['1/3', 2]);
  assert.deepEqual(['stage', 'schedule'].map((key) => valueOf(run(1, {}), key)), [undefined, undefined]);
});

test('the only trial of an experiment has the color of the experiment', () => {
  const of = (experiment: object): Run => ({ ...run(9, {}), experiment: { id: 4, numTrials: 1, ...experiment } as unknown as Experiment });
  const seeds = (one: Run): number | undefined => usualSeeds([one], new Map([[9, 7]]), () => new Map([[5, 2]])).get(9);
  assert.deepEqual([seeds(of({})), seeds(of({ id: 5 })), seeds(of({ numTrials: 2 })), seeds(of({ config: { searcher: { max_trials: 8 } } }))], [4, 2, 7, 7]);
});

test('a deviation has two digits', () => {
  assert.deepEqual([0, 0.0000341, 0.0012, 0.03, 4.26, 99.9, 123].map(deviationText), ['0', '3.4e-5', '0.0012', '0.030', '4.3', '100', '123']);
});

test('groups are in the order of their means, and keep their colors in any order', () => {
  const runs = [run(1, { act: 'relu' }, 9), run(2, { act: 'gelu' }, 5), run(3, { act: 'tanh' }), run(4, { act: 'relu' }, 2), run(5, { act: 'gelu' }, 6)];
  const told = (descending: boolean) => groupsOf(runs, ['hp.act'], { column: 'searcherMetricsVal', descending }).map(({ label, color }) => `${label} ${color}`);
  assert.deepEqual(told(true), ['act = relu 1', 'act = gelu 0', 'act = tanh 2']);
  runs[0] = run(1, { act: 'relu' }, 1);
  assert.deepEqual(told(true), ['act = gelu 0', 'act = relu 1', 'act = tanh 2']);
  assert.deepEqual(told(false), ['act = relu 1', 'act = gelu 0', 'act = tanh 2']);
  assert.deepEqual(groupsOf(runs, ['hp.act'], { column: 'name', descending: false }).map(({ label }) => label), ['act = relu', 'act = gelu', 'act = tanh']);
});

test('the group without values comes last, in any order of the rows', () => {
  const runs = [run(1, {}, 9), run(2, { act: 'gelu' }, 5), run(3, { act: 'tanh' }, 1)];
  const told = (sort?: { column: string; descending: boolean }) => groupsOf(runs, ['hp.act'], sort).map(({ tag, color, isUnset }) => `${tag} ${color} ${isUnset}`);
  const expected = ['gelu 0 false', 'tanh 1 false', 'not set 2 true'];
  assert.deepEqual(told(), expected);
  assert.deepEqual(told({ column: 'searcherMetricsVal', descending: true }), expected);
});

test('a wide table has the hyperparameters that differ most, as many as it has room for, then labels; beside charts it has two', () => {
  const runs = [run(1, { act: 'relu', lr: 1, width: 8 }), run(2, { act: 'gelu', lr: 1, width: 16 }), run(3, { act: 'relu', lr: 1, width: 32, rare: 1 })];
  const added = (width: number, beside = false): string[] => usualColumns(runs, beside, width).filter((key) => key.startsWith('hp.') || key === 'tags');
  assert.deepEqual(added(3000), ['hp.width', 'hp.act']);
  assert.deepEqual(added(1000), ['hp.width']);
  assert.deepEqual(added(900), []);
  assert.deepEqual(added(1440, true), ['hp.width', 'hp.act']);
  runs[0] = { ...run(1, { act: 'relu', lr: 1, width: 8 }), experiment: { trialIds: [], labels: ['first'] } as unknown as Experiment };
  assert.deepEqual(added(3000), ['hp.width', 'hp.act', 'tags']);
  assert.deepEqual(added(1100), ['hp.width', 'hp.act']);
  assert.deepEqual(usualColumns([], false, 3000), DEFAULT_COLUMNS.experiment);
});

test('the best value of the searcher metric is marked unless all are equal', () => {
  const marked = (values: readonly (number | undefined)[], smallerIsBetter: boolean): number[] => {
    const runs = values.map((value, at) => run(at + 1, {}, value));
    const one = withBest(column('searcherMetricsVal', 'trial') as Column, runs, smallerIsBetter);
    return runs.filter((each) => (one.cell(each, 0) as { type?: unknown }).type === 'strong').map(({ id }) => id);
  };
  assert.deepEqual(marked([0.5, undefined, 0.7, 0.7], false), [3, 4]);
  assert.deepEqual(marked([0.5, undefined, 0.7, 0.7], true), [1]);
  assert.deepEqual(marked([0.5, undefined, 0.5], true), []);
});

test('a column that has one value only is left out', () => {
  const of = (id: number, username: string): Run => ({ ...run(id, {}), experiment: { trialIds: [], labels: [], username, numTrials: 1 } as unknown as Experiment });
  const shown = (...users: string[]): string[] => ['user', 'numTrials'].filter((key) => usualColumns(users.map((user, at) => of(at + 1, user)), true, 1440).includes(key));
  assert.deepEqual(shown('ann', 'ann'), []);
  assert.deepEqual(shown('ann', 'bob'), ['user']);
  assert.deepEqual(shown('ann'), ['user', 'numTrials']);
});

test('a running search has the number of its trials by state, and the length to which they train', () => {
  const of = (state: string, totalBatchesProcessed = 0, progress = 0): Trial => trial(1, {}, undefined, { state, totalBatchesProcessed, progress });
  const search = (searcher: JsonObject, state = 'STATE_RUNNING'): Experiment => ({ state, config: { searcher } }) as unknown as Experiment;
  const five = ['COMPLETED', 'ERROR', 'RUNNING', 'QUEUED', 'PAUSED'].map((state) => of(`STATE_${state}`));
  assert.equal(trialsText(search({ max_trials: 12 }), five), '2 of 12 trials ended, 1 running, 1 paused, 1 waiting, 7 to come');
  assert.equal(trialsText(search({}), five.slice(0, 3)), '2 of 3 trials ended, 1 running');
  assert.equal(trialsText(search({ max_trials: 12 }, 'STATE_COMPLETED'), five), '5 trials');
  assert.equal(trialsText(search({}), [of('STATE_RUNNING')]), '1 trial');
  const full = search({ max_length: { batches: 20_000 } });
  assert.equal(trialsText(full, [of('STATE_RUNNING', 12_600, 0.63)]), '12,600 of 20,000 batches');
  // The program decides the length.
  assert.equal(trialsText(full, [of('STATE_RUNNING', 12_600, 0.1575)]), '12,600 of ~80,000 batches');
  assert.equal(targetTitle('Batches', { batches: 80_000, isEstimated: true }), 'Batches of ~80k');
  assert.equal(targetTitle('Batches', { batches: 6000, isEstimated: false }), 'Batches of 6,000');
  const lengths = (...trials: Trial[]): unknown => targetOf(search({ max_trials: 12 }), trials)?.batches;
  assert.equal(lengths(of('STATE_RUNNING', 12_600, 0.1575), of('STATE_RUNNING', 12_700, 0.1575), of('STATE_COMPLETED', 80_000, 1)), 80_000);
  assert.equal(lengths(of('STATE_RUNNING', 100, 0.001)), undefined, 'too early');
  assert.equal(lengths(of('STATE_RUNNING', 100, 0.5), of('STATE_RUNNING', 100, 0.1)), undefined, 'each has its own');
});

test('the time left is work with slots, shared by the trials that run', () => {
  const of = (state: string, wallClockTime: number): Trial => trial(1, {}, undefined, { state, wallClockTime });
  const trials = [of('STATE_COMPLETED', 200), of('STATE_RUNNING', 60), of('STATE_RUNNING', 40), of('STATE_QUEUED', 0)];
  assert.equal(timeLeft({ state: 'STATE_RUNNING', progress: 0.25 }, trials), 450);
  assert.equal(timeLeft({ state: 'STATE_RUNNING', progress: 0.01 }, trials), undefined);
  assert.equal(timeLeft({ state: 'STATE_RUNNING', progress: 0.25 }, trials.slice(3)), undefined, 'none runs');
  assert.equal(timeLeft({ state: 'STATE_STOPPING_CANCELED', progress: 0.25 }, trials), undefined);
});

test('a trial that a search by halving completed before its full length was stopped early, where that is in batches', () => {
  const of = (searcherType: string, searcher: JsonObject, batches: number, state = 'STATE_COMPLETED'): string =>
    shownState(ofTrial({ id: 1, searcherType, trialIds: [], config: { searcher } } as unknown as Experiment, trial(1, {}, 1, { totalBatchesProcessed: batches, state })));
  const inBatches = { time_metric: 'batches', max_time: 80 };
  assert.equal(of('adaptive_asha', inBatches, 20), STOPPED_EARLY);
  assert.equal(of('asha', { max_length: { batches: 80 } }, 20), STOPPED_EARLY);
  assert.equal(of('adaptive_asha', inBatches, 80), 'STATE_COMPLETED');
  assert.equal(of('adaptive_asha', inBatches, 20, 'STATE_ERROR'), 'STATE_ERROR');
  assert.equal(of('random', inBatches, 20), 'STATE_COMPLETED');
  // A trial with a larger batch has fewer batches in an epoch.
  assert.equal(of('adaptive_asha', { time_metric: 'epochs', max_time: 80 }, 20), 'STATE_COMPLETED');
  assert.equal(of('adaptive_asha', { max_length: { epochs: 80 } }, 20), 'STATE_COMPLETED');
});

test('runs without a value come last in either direction; a further column orders equal ones', () => {
  const runs = [run(1, { lr: 2, b: 1 }), run(2, {}), run(3, { lr: 1, b: 2 }), run(4, { lr: 2, b: 0 })];
  const ids = (...sorts: [string, boolean][]): number[] => inOrder(runs, sorts.map(([column, descending]) => ({ column, descending }))).map(({ id }) => id);
  assert.deepEqual(ids(['hp.lr', false]), [3, 1, 4, 2]);
  assert.deepEqual(ids(['hp.lr', true], ['hp.b', false]), [4, 1, 3, 2]);
  assert.deepEqual(ids(), [1, 2, 3, 4]);
});

test('a hundred thousand runs are filtered, sorted and grouped in less than a second', () => {
  const runs = Array.from({ length: 100_000 }, (_, n) => run(n + 1, { lr: ((n * 7919) % 1000) / 1000, act: ['relu', 'gelu', 'tanh'][n % 3] ?? '' }, (n * 31) % 977));
  const known = ['hp.lr', 'hp.act', 'searcherMetricsVal'].map((key) => ({ key, title: key }));
  const time = (work: () => unknown): number => {
    work();
    const begin = performance.now();
    work();
    return performance.now() - begin;
  };
  const took = {
    query: time(() => runs.filter(matcher(parse('lr < 0.5 and act = relu', known), valueOf))),
    sort: time(() => inOrder(runs, [{ column: 'searcherMetricsVal', descending: true }])),
    group: time(() => groupsOf(runs, ['hp.act'])),
  };
  console.log('# 100,000 runs, ms:', JSON.stringify(took, (_, value) => (typeof value === 'number' ? Math.round(value) : value)));
  assert.ok(Object.values(took).every((ms) => ms < 1000), JSON.stringify(took));
});

test('the first runs are drawn until some are chosen', () => {
  const runs = Array.from({ length: 12 }, (_, n) => run(n + 1, {}));
  assert.deepEqual(drawnRuns(runs, undefined).map(({ id }) => id), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(drawnRuns(runs, [9, 2, 77]).map(({ id }) => id), [2, 9]);
  assert.deepEqual(drawnRuns(runs, []), []);
});

test('running experiments, then the newest with curves and the best are drawn first, in any order of the table', () => {
  const of = (id: number, state: string, best: number | null): Run => {
    const one = run(id, {});
    const measured = best === null ? null : { metrics: { avgMetrics: { loss: best } } };
    return {
      ...one,
      kind: 'experiment',
      state,
      experiment: { ...one.experiment, bestTrialSearcherMetric: best } as Run['experiment'],
      trial: one.trial && ({ ...one.trial, bestValidation: measured } as Run['trial']),
    };
  };
  const old = Array.from({ length: 12 }, (_, n) => of(n + 10, 'STATE_COMPLETED', n));
  const rows = [of(30, 'STATE_QUEUED', null), ...old, of(1, 'STATE_RUNNING', null), of(2, 'STATE_RUNNING', 0.5)];
  const drawn = drawnRuns(rows, undefined).map(({ id }) => id).sort((a, b) => a - b);
  assert.deepEqual(drawn, [1, 2, 16, 17, 18, 19, 20, 21]);
  assert.deepEqual(drawnRuns([...rows].reverse(), undefined).map(({ id }) => id).sort((a, b) => a - b), drawn);
  const drawnWith = (smallerIsBetter: boolean) => drawnRuns(rows, undefined, [], smallerIsBetter).map(({ id }) => id).sort((a, b) => a - b);
  assert.deepEqual(drawnWith(false), drawn, 'the best one is among the newest');
  assert.deepEqual(drawnWith(true), [1, 2, 10, 17, 18, 19, 20, 21]);
  assert.deepEqual(drawnRuns([of(30, 'STATE_QUEUED', null)], undefined).map(({ id }) => id), [30]);
});

test('colors of ids in a row differ clearly and stand out from the card', () => {
  const parts = (color: string): number[] => (color.match(/\d+/g) ?? []).map(Number);
  const light = (color: string): number => {
    const [r = 0, g = 0, b = 0] = parts(color).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a: string, b: string): number => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const apart = (a: string, b: string): number => Math.hypot(...parts(a).map((part, at) => part - (parts(b)[at] ?? 0)));
  for (const [dark, card] of [[false, 'rgb(255, 255, 255)'], [true, 'rgb(25, 28, 34)']] as const)
    for (const first of [1, 600_001]) {
      const colors = Array.from({ length: 360 }, (_, at) => runColor(first + at, dark));
      assert.ok(colors.every((one) => contrast(one, card) >= 3), colors.find((one) => contrast(one, card) < 3));
      colors.forEach((one, at) => {
        for (const other of colors.slice(at + 1, at + 17)) assert.ok(apart(one, other) > 25, `${one} and ${other}`);
        for (const other of colors.slice(at + 1, at + 8)) assert.ok(apart(one, other) > 40, `${one} and ${other}`);
      });
    }
});

test('shown runs whose ids look alike get colors apart, and none changes its color while it is shown', () => {
  const apart = (one: number, other: number, dark: boolean): number => {
    const parts = [runColor(one, dark), runColor(other, dark)].map((color) => (color.match(/\d+/g) ?? []).map(Number));
    return Math.hypot(...[0, 1, 2].map((at) => (parts[0]?.[at] ?? 0) - (parts[1]?.[at] ?? 0)));
  };
  assert.ok(apart(46, 10, false) < 25);
  const first = seedsOf([46, 10], new Map());
  assert.deepEqual([...first], [[10, 10], [46, first.get(46)]]);
  const all = seedsOf([16, 48, 21, 51, 22, 10, 44, 46], first);
  assert.deepEqual([all.get(10), all.get(46)], [10, first.get(46)]);
  for (const dark of [false, true])
    for (const [id, seed] of all) for (const [other, taken] of all) if (id < other) assert.ok(apart(seed, taken, dark) > 40, `${id} and ${other}`);
  assert.deepEqual([...seedsOf([46], new Map())], [[46, 46]]);
  const many = Array.from({ length: 200 }, (_, at) => at + 1);
  assert.equal(seedsOf(many, new Map()).get(200), 200);
  assert.deepEqual([...seedsOf([10, 11], seedsOf(many, new Map()))], [[10, 10], [11, 11]]);
});

test('a run keeps the color that it had last, unless that looks like the color of another shown run', () => {
  const usual = new Map([[46, 7], [10, 46]]);
  assert.deepEqual([...seedsOf([46], new Map(), usual)], [[46, 7]]);
  const both = seedsOf([10, 11], new Map([[11, 46]]), usual);
  assert.equal(both.get(11), 46);
  assert.notEqual(both.get(10), 46);
  // A run without a color gives way to one that had it.
  const early = seedsOf([3, 20], new Map(), new Map([[20, 3]]));
  assert.equal(early.get(20), 3);
  assert.notEqual(early.get(3), 3);
  assert.deepEqual([...(withShown(usual, new Map([[46, 9], [12, 12]])) ?? [])], [[10, 46], [46, 9], [12, 12]]);
  assert.equal(withShown(usual, new Map([[46, 7]])), undefined);
  assert.equal(withShown(new Map(Array.from({ length: 500 }, (_, at) => [at + 1, 1])), new Map([[900, 2]]))?.size, 500);
  assert.deepEqual([...readSeeds('[[1,2],["x",3],[4],[5,-1]]')], [[1, 2]]);
  for (const text of [null, '{', '{}', '3']) assert.equal(readSeeds(text).size, 0);
});

test('after the page is loaded again all runs have the colors that they had, whatever the order in which they were shown', () => {
  for (let first = 1; first <= 50; first++) {
    const ids = Array.from({ length: 12 }, (_, at) => ((first * 37 + at * 29) % 61) + 1);
    const shown = ids.reduce((seeds, _, at) => seedsOf(ids.slice(0, at + 1), seeds), new Map<number, number>());
    const inOrder = [...ids].sort((a, b) => a - b);
    assert.deepEqual(new Map([...seedsOf(inOrder, new Map(), shown)].sort()), new Map([...shown].sort()), `${ids}`);
  }
});

test('the best value so far follows the better direction', () => {
  const trials = [trial(3, {}, 0.7), trial(1, {}, 0.5), trial(2, {}), trial(4, {}, 0.6)];
  assert.deepEqual(history(trials, false).map(({ trial: { id }, best }) => [id, best]), [[1, 0.5], [3, 0.7], [4, 0.7]]);
  assert.deepEqual(history(trials, true).map(({ best }) => best), [0.5, 0.5, 0.5]);
});

test('the Pareto front leaves out trials that another one beats', () => {
  const of = (id: number, loss: number, accuracy: number): Trial => trial(id, {}, 0, { bestValidation: { metrics: { avgMetrics: { loss, accuracy } } } });
  const goals: [Goal, Goal] = [{ name: 'loss', smaller: true }, { name: 'accuracy', smaller: false }];
  const all = points([of(1, 1, 0.5), of(2, 2, 0.9), of(3, 2, 0.7), of(4, 3, 0.9), of(5, 0.5, 0.4), trial(6, {})], goals);
  assert.equal(all.length, 5);
  assert.deepEqual(front(all, goals).map(({ trial: { id } }) => id), [5, 1, 2]);
  assert.deepEqual(readGoals(writeGoals(goals)), goals);
  assert.equal(readGoals('loss:min'), undefined);
});

test('a brush becomes conditions of its axis, and conditions show as a brush', () => {
  const log: Dimension = { name: 'lr', kind: 'log', words: [], min: 0.0001, max: 1 };
  const words: Dimension = { name: 'act', kind: 'words', words: ['relu', 'gelu', 'tanh'], min: 0, max: 2 };
  const tests = brushTests(log, 'hp.lr', 0.25, 0.5);
  assert.deepEqual(tests.map((one) => one.kind === 'test' && [one.operator, ...one.values]), [['>=', '0.001'], ['<=', '0.01']]);
  const held = brushed({ kind: 'and', all: tests }, 'hp.lr', log) ?? [0, 0];
  assert.ok(Math.abs(held[0] - 0.25) < 1e-9 && Math.abs(held[1] - 0.5) < 1e-9, held.join());
  assert.deepEqual(brushTests(words, 'hp.act', 0.4, 1), [{ kind: 'test', column: 'hp.act', operator: 'in', values: ['gelu', 'tanh'] }]);
  assert.deepEqual(brushTests(words, 'hp.act', 0.1, 0.2), []);
  assert.equal(brushed(undefined, 'hp.lr', log), undefined);
});

test('a group is drawn as the mean of its curves where they have values, with a band', () => {
  const series = (id: number, x: number[], y: number[]): Series => ({ label: '', group: 'training', trial: id, place: id, x, y, steps: x });
  const panel = { name: 'loss', series: [series(1, [0, 10], [0, 10]), series(2, [0, 5, 10, 20], [2, 7, 12, 22]), series(3, [0], [9])] };
  const banded = toBands(panel, (id) => (id < 3 ? { place: 0, label: 'act = relu' } : undefined));
  assert.deepEqual(banded.series.map(({ isPartial }) => isPartial), [undefined, true], 'one of them ends before the other');
  const [mean] = whole(banded.series);
  assert.equal(mean?.label, 'act = relu · training (2)');
  assert.deepEqual([mean?.x, mean?.y], [[0, 5, 10, 20], [1, 6, 11, 22]]);
  // One deviation is more than the distance of both values.
  assert.deepEqual([mean?.low?.[1], mean?.high?.[1]], [5, 7]);
  assert.equal(mean?.low?.[3], 22);
});

test('a run that is shown or hidden leaves the others shown, also those without a loaded row', () => {
  const rows = [run(1, {}), run(2, {})];
  assert.deepEqual(flipDrawn([1, 900], rows.slice(0, 1), 2), [1, 900, 2]);
  assert.deepEqual(flipDrawn([1, 900], rows.slice(0, 1), 1), [900]);
  assert.deepEqual(flipDrawn(undefined, rows, 2), [1]);
  assert.deepEqual([outside([1, 900], rows), outside(undefined, rows)], [[900], []]);
});

test('chosen runs take the state that their rows have now, and those out of sight stay chosen', () => {
  const [old, other] = [run(1, {}), run(2, {})];
  const chosen = new Map([old, other].map((one) => [one.id, one] as const));
  const now = run(1, {}, 0.5);
  assert.deepEqual([...withRows(chosen, [now, run(3, {})]).values()], [now, other]);
  assert.equal(withRows(chosen, [old]), chosen, 'nothing changed');
  assert.equal(withRows(new Map(), [now]).size, 0);
});

test('runs without a reported metric are not among the first that are drawn', () => {
  const reported = (id: number, batches: number): Run => {
    const one = run(id, {});
    return { ...one, trial: one.trial && { ...one.trial, totalBatchesProcessed: batches } };
  };
  assert.deepEqual(drawnRuns([reported(1, 0), reported(2, 100), reported(3, 5)], undefined).map(({ id }) => id), [2, 3]);
  assert.deepEqual(drawnRuns([reported(1, 0), reported(2, 0)], undefined).map(({ id }) => id), [1, 2]);
  assert.deepEqual(drawnRuns([reported(1, 0), reported(2, 100)], [1]).map(({ id }) => id), [1]);
  assert.deepEqual(drawnRuns([reported(1, 0), reported(2, 100)], undefined, [1]).map(({ id }) => id), [1, 2]);
  assert.deepEqual(drawnRuns([reported(1, 0), reported(2, 100)], [2], [1]).map(({ id }) => id), [2]);
});
