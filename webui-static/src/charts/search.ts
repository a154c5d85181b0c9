// Data for the charts of a search: hyperparameters as axes, rungs from the
// lengths at which trials ended. Pure.
import type { Brackets } from '../calls/brackets';
import type { DataPoint, JsonObject, JsonValue, Trial } from '../wire';
import { counted, grouped, isEnded, metric } from '../format';
import { TIME_STEPS } from './series';

export interface Dimension {
  name: string;
  kind: 'linear' | 'log' | 'words';
  words: string[]; // for kind 'words', in order
  min: number;
  max: number;
  isWhole?: boolean; // all values are integers
}

const whole = (values: readonly JsonValue[]): { isWhole?: true } => (values.every(Number.isInteger) ? { isWhole: true } : {});

type Flat = Map<string, JsonValue>;

export function flatten(value: JsonValue | null | undefined, prefix = '', out: Flat = new Map()): Flat {
  if (value === null || value === undefined || typeof value !== 'object' || Array.isArray(value)) return out;
  for (const [name, inner] of Object.entries(value)) {
    if (inner !== null && typeof inner === 'object' && !Array.isArray(inner)) flatten(inner, `${prefix}${name}.`, out);
    else out.set(`${prefix}${name}`, inner);
  }
  return out;
}

const word = (value: JsonValue): string => (typeof value === 'string' ? value : JSON.stringify(value));

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

// The searched hyperparameters of a resolved configuration, by flat name: those with a type and values.
function declared(value: JsonValue | undefined, prefix = '', out = new Map<string, JsonObject>()): Map<string, JsonObject> {
  if (!isObject(value)) return out;
  for (const [name, inner] of Object.entries(value)) {
    if (!isObject(inner)) continue;
    if (typeof inner.type === 'string' && (Array.isArray(inner.vals) || typeof inner.minval === 'number')) out.set(`${prefix}${name}`, inner);
    else declared(inner, `${prefix}${name}.`, out);
  }
  return out;
}

// Type and range as configured, widened to the values that trials have.
function fromConfig(name: string, config: JsonObject, values: readonly JsonValue[]): Dimension | undefined {
  if (Array.isArray(config.vals)) {
    const words = [...new Set([...config.vals, ...values].map(word))];
    return { name, kind: 'words', words, min: 0, max: words.length - 1 };
  }
  const log = config.type === 'log';
  const bound = (value: JsonValue | undefined): number => (log ? Number(config.base) ** Number(value) : Number(value));
  const numbers = values.filter((value) => typeof value === 'number');
  if (numbers.length < values.length) return undefined;
  const ends = [bound(config.minval), bound(config.maxval), ...numbers];
  return { name, kind: log ? 'log' : 'linear', words: [], min: Math.min(...ends), max: Math.max(...ends), ...whole(ends) };
}

// The values that the configuration lists for a hyperparameter.
export function choicesOf(hyperparameters: JsonValue | undefined, name: string): string[] {
  const { vals } = declared(hyperparameters).get(name) ?? {};
  return Array.isArray(vals) ? vals.map(word) : [];
}

const LOG_SPAN = 10;

// Whether positive numbers span so much that a logarithmic axis shows them better.
export const isWide = (min: number, max: number): boolean => min > 0 && max >= LOG_SPAN * min;

// The hyperparameters that differ between trials, by name, with the type and range that the configuration gives.
// Without a declaration (trials of different experiments, forked or detached ones) positive numbers that span a factor of
// ten are logarithmic. Trials without the hyperparameter do not
// count: trials of different experiments rarely share all of them.
export function dimensions(trials: readonly Trial[], hyperparameters?: JsonValue): Dimension[] {
  const all = trials.map((trial) => flatten(trial.hparams));
  const names = [...new Set(all.flatMap((flat) => [...flat.keys()]))].sort();
  const configs = declared(hyperparameters);
  return names.flatMap((name): Dimension[] => {
    const values = all.map((flat) => flat.get(name)).filter((value) => value !== undefined);
    const words = [...new Set(values.map(word))].sort();
    if (words.length < 2) return [];
    const config = configs.get(name);
    const found = config && fromConfig(name, config, values);
    if (found) return [found];
    const numbers = values.filter((value) => typeof value === 'number');
    if (numbers.length < values.length) return [{ name, kind: 'words', words, min: 0, max: words.length - 1 }];
    const [min, max] = [Math.min(...numbers), Math.max(...numbers)];
    return [{ name, kind: isWide(min, max) ? 'log' : 'linear', words: [], min, max, ...whole(numbers) }];
  });
}

// The position of a trial on a dimension, 0..1; NaN without a value.
export function position(dimension: Dimension, trial: Trial): number {
  const value = flatten(trial.hparams).get(dimension.name);
  if (dimension.kind === 'words') {
    const at = value === undefined ? -1 : dimension.words.indexOf(word(value));
    return at < 0 ? NaN : dimension.max === 0 ? 0 : at / dimension.max;
  }
  return share(dimension, Number(value));
}

// Of the dimensions of different experiments those that half of the trials have.
export const shared = (all: Dimension[], trials: readonly Trial[]): Dimension[] =>
  all.filter((one) => 2 * trials.filter((trial) => !Number.isNaN(position(one, trial))).length >= trials.length);

// The searcher metric as a dimension; undefined until a trial has one.
export function objective(trials: readonly Trial[], name: string): Dimension | undefined {
  const values = trials.map(metricOf).filter((value) => value !== undefined);
  if (values.length === 0) return undefined;
  return { name, kind: 'linear', words: [], min: Math.min(...values), max: Math.max(...values) };
}

// A number as the table shows it; whole numbers with all digits.
const shown = (value: number): string => (Number.isInteger(value) ? String(value) : metric(value));

// Numbers that differ by a greater part of themselves are shown differently.
const RESOLUTION = 1e-3;

// All values of a range are shown as the same text.
export const isConstant = ({ kind, min, max }: Pick<Dimension, 'kind' | 'min' | 'max'>): boolean =>
  kind !== 'words' && (min === max || (max - min < RESOLUTION * Math.max(Math.abs(min), Math.abs(max)) && shown(min) === shown(max)));

export function share(dimension: Pick<Dimension, 'kind' | 'min' | 'max'>, value: number): number {
  const { min, max } = dimension;
  if (isConstant(dimension)) return 0.5;
  if (dimension.kind === 'log') return Math.log(value / min) / Math.log(max / min);
  return (value - min) / (max - min);
}

// Part of a range that an axis has beyond each end, so that no point lies on its edge.
const PADDING = 0.05;

// The dimension with a range that is wider at both ends.
export function padded(dimension: Dimension): Dimension {
  const { kind, min, max } = dimension;
  if (kind === 'words' || isConstant(dimension)) return dimension;
  if (kind === 'log') {
    const factor = (max / min) ** PADDING;
    return { ...dimension, min: min / factor, max: max * factor };
  }
  const room = PADDING * (max - min);
  return { ...dimension, min: min - room, max: max + room };
}

// The searcher metric of a trial; undefined unless it is a finite number.
export function metricOf(trial: Trial): number | undefined {
  const value = trial.searcherMetricValue;
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

// 0 for the best value to 1 for the worst. Ranks keep one outlier from making all other values look alike. Equal trials
// have no best one: 0.5.
export function ranks(trials: readonly Trial[], smallerIsBetter: boolean): Map<number, number> {
  const scored = trials
    .map((trial) => ({ id: trial.id, value: metricOf(trial) }))
    .filter((one): one is { id: number; value: number } => one.value !== undefined)
    .sort((a, b) => (smallerIsBetter ? a.value - b.value : b.value - a.value));
  const last = scored.length - 1;
  const [first = 0, end = 0] = [scored[0]?.value, scored[last]?.value];
  const isEqual = last > 0 && isConstant({ kind: 'linear', min: Math.min(first, end), max: Math.max(first, end) });
  return new Map(scored.map((one, at) => [one.id, isEqual ? 0.5 : last < 1 ? 0 : at / last]));
}

interface Rung {
  batches: number;
  reached: number;
}

// The lengths at which trials ended, shortest first. A search without early stopping has one.
export function rungs(trials: readonly Trial[]): Rung[] {
  const levels = [
    ...new Set(
      trials
        .filter((trial) => isEnded(trial.state) && trial.totalBatchesProcessed > 0)
        .map((trial) => trial.totalBatchesProcessed),
    ),
  ].sort((a, b) => a - b);
  return levels.map((batches) => ({
    batches,
    reached: trials.filter((one) => one.totalBatchesProcessed >= batches).length,
  }));
}

// One chart of a search: a bracket, or the whole search when it has none.
export interface Lane {
  title: string; // "" for a search without brackets
  trials: Trial[];
  // `wentOn` is undefined for the last rung.
  rungs: { length: number; came: number; wentOn: number | undefined }[];
  maxTrials: number | undefined;
}

export function lanes(all: Brackets, trials: readonly Trial[]): Lane[] {
  if (all.brackets.length === 0) {
    const steps = rungs(trials);
    return [
      {
        title: '',
        trials: [...trials],
        maxTrials: undefined,
        rungs: steps.map((one, at) => ({ length: one.batches, came: one.reached, wentOn: steps[at + 1]?.reached })),
      },
    ];
  }
  const byId = new Map(trials.map((trial) => [trial.id, trial]));
  return all.brackets.map((one, at) => ({
    title: all.brackets.length === 1 ? 'Schedule' : `Schedule ${at + 1} of ${all.brackets.length}`,
    trials: one.trialIds.map((id) => byId.get(id)).filter((trial) => trial !== undefined),
    maxTrials: one.maxTrials,
    rungs: one.rungs.map((rung, level) => ({
      length: rung.length,
      came: rung.trials,
      wentOn: one.rungs[level + 1]?.trials,
    })),
  }));
}

// The stage (rung) of a trial: the one that it trains for, or at which it was stopped.
export interface Stage {
  at: number; // from 1
  of: number; // stages of its bracket
  length: number; // of training, in units of the search
  unit: string;
  isStopped: boolean;
  schedule: number; // its bracket, from 1
  schedules: number; // brackets of the search
}

// The stages of the trials of a search by halving, by trial. A trial that its search completed has ended at a stage.
export function trialStages({ brackets, timeMetric }: Brackets, trials: readonly Trial[]): Map<number, Stage> {
  const unit = timeMetric || 'batches';
  const lengthOf = ({ totalBatchesProcessed, latestValidation }: Trial): number =>
    unit === 'batches' ? totalBatchesProcessed : Number(latestValidation?.metrics?.avgMetrics?.[unit] ?? 0);
  const byId = new Map(trials.map((trial) => [trial.id, trial]));
  return new Map(
    brackets.flatMap(({ rungs: levels, trialIds }, bracket) =>
      trialIds.flatMap((id): [number, Stage][] => {
        const trial = byId.get(id);
        if (!trial || levels.length === 0) return [];
        const passed = levels.filter(({ length }) => length <= lengthOf(trial)).length;
        const isCompleted = trial.state === 'STATE_COMPLETED';
        const at = isCompleted ? Math.max(1, passed) : Math.min(levels.length, passed + 1);
        const isStopped = isCompleted && at < levels.length;
        return [[id, { at, of: levels.length, length: levels[at - 1]?.length ?? 0, unit, isStopped, schedule: bracket + 1, schedules: brackets.length }]];
      }),
    ),
  );
}

// "Stopped at stage 1 of 3, 667 batches".
export const stageText = ({ at, of, length, unit, isStopped }: Stage): string => `${isStopped ? 'Stopped at stage' : 'Stage'} ${at} of ${of}, ${grouped(length)} ${unit}`;

// A value of a trial at a stage, with the time of its report.
interface Entry {
  id: number;
  value: number;
  seconds: number;
  isStopped: boolean;
}

export interface Early {
  stage: number; // after which the trial went on, from 1
  id: number; // of the trial
  before: number[]; // better trials that were stopped there, which reported later
}

// The trials that went on after a stage although better ones were stopped there, which reported later: halving that does not
// wait compares a trial with those before it. `reportsOf`: the reports of a trial, ascending by length.
export function wentOnEarly({ trials, rungs: levels }: Lane, reportsOf: (trial: Trial) => readonly Report[], smallerIsBetter: boolean): Early[] {
  const isBetter = (a: Entry, b: Entry): boolean => (smallerIsBetter ? a.value < b.value : a.value > b.value);
  return levels.slice(0, -1).flatMap(({ length }, level): Early[] => {
    const entries = trials.flatMap((trial): Entry[] => {
      const [first, next] = reportsOf(trial).filter((report) => report.value !== undefined && report.length >= length);
      // A trial may train a little past a stage before it stops.
      const isDone = trial.state === 'STATE_COMPLETED';
      const isStopped = next === undefined || (isDone && !reportsOf(trial).some((report) => report.length >= (levels[level + 1]?.length ?? 0)));
      if (first?.value === undefined || (isStopped && !isDone)) return [];
      return [{ id: trial.id, value: first.value, seconds: first.seconds, isStopped }];
    });
    const stopped = entries.filter(({ isStopped }) => isStopped).sort((a, b) => a.id - b.id);
    return entries.flatMap((one): Early[] => {
      const before = one.isStopped ? [] : stopped.filter((other) => isBetter(other, one) && other.seconds > one.seconds);
      return before.length > 0 ? [{ stage: level + 1, id: one.id, before: before.map(({ id }) => id) }] : [];
    });
  });
}

// More trials are counted.
const MAX_EARLY = 3;
const joinedBy = (word: string, ids: readonly number[]): string => ids.join(', ').replace(/, ([^,]+)$/, ` ${word} $1`);

// "Stage 1: trials 40 and 41 were stopped although they were better than 31 or 32, which reported earlier.".
export function earlyText(early: readonly Early[]): string {
  const sorted = (ids: readonly number[]): number[] => [...new Set(ids)].sort((a, b) => a - b);
  const parts = [...new Set(early.map(({ stage }) => stage))].map((stage) => {
    const own = early.filter((one) => one.stage === stage);
    const [better, others] = [sorted(own.flatMap(({ before }) => before)), sorted(own.map(({ id }) => id))];
    const named = better.length > MAX_EARLY ? counted(better.length, 'trial') : `trial${better.length > 1 ? 's' : ''} ${joinedBy('and', better)}`;
    const than = others.length > MAX_EARLY ? `${others.length} others` : joinedBy('or', others);
    return `Stage ${stage}: ${named} ${better.length > 1 ? 'were stopped although they were' : 'was stopped although it was'} better than ${than}, which reported earlier.`;
  });
  return parts.join(' ');
}

// The lane with its rungs at the lengths at which its trials were compared: those of the first validations at or after
// the configured ones. `validated`: the lengths of the validations of each trial, ascending.
export function atValidations(lane: Lane, validated: readonly (readonly number[])[]): Lane {
  const decided = (length: number): number => Math.min(...validated.map((all) => all.find((one) => one >= length) ?? Infinity));
  return { ...lane, rungs: lane.rungs.map((rung) => ({ ...rung, length: Number.isFinite(decided(rung.length)) ? decided(rung.length) : rung.length })) };
}

// The length that a trial had reached at a validation, in the search's unit.
export function reached(point: DataPoint, timeMetric: string): number | undefined {
  if (timeMetric === 'batches' || timeMetric === '') return point.batches;
  const value = point.values?.[timeMetric] ?? (/^epochs?$/.test(timeMetric) ? point.epoch : undefined);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

// The `count` trials that trained longest, in the original order.
export function farthest(trials: readonly Trial[], count: number): Trial[] {
  if (trials.length <= count) return [...trials];
  const kept = new Set(
    [...trials]
      .sort((a, b) => b.totalBatchesProcessed - a.totalBatchesProcessed || a.id - b.id)
      .slice(0, count)
      .map((trial) => trial.id),
  );
  return trials.filter((trial) => kept.has(trial.id));
}

// The best value among trials and the id of its trial.
export function bestOf(trials: readonly Trial[], smallerIsBetter: boolean): { id: number; value: number } | undefined {
  let best: { id: number; value: number } | undefined;
  for (const trial of trials) {
    const value = metricOf(trial);
    if (value === undefined) continue;
    if (!best || (smallerIsBetter ? value < best.value : value > best.value)) best = { id: trial.id, value };
  }
  return best;
}

export interface Report {
  length: number; // of training, in units of the search
  seconds: number; // since the start of the experiment
  value?: number | undefined; // of the metric
}

// The reports of a trial after the point at which its training began: back from the first reports at their pace, but not
// before the trial was created. It may have waited for slots until then.
export function fromBegin(reports: readonly Report[], created: number): Report[] {
  const [first, second] = reports;
  if (!first) return [{ length: 0, seconds: created }];
  const pace = second && second.length > first.length ? (second.seconds - first.seconds) / (second.length - first.length) : Infinity;
  const begun = Math.min(first.seconds, Math.max(created, first.seconds - pace * first.length));
  return [{ length: 0, seconds: Number.isFinite(begun) ? begun : created }, ...reports];
}

// With a greater ratio of the longest to the lowest rung, a linear scale would draw the lower rungs over each other.
const MAX_LINEAR = 8;

export interface LengthScale {
  longest: number;
  isLog: boolean;
  part: (length: number) => number; // 0..1
}

// The scale of an axis of training lengths. On a logarithmic one, what is below half of the lowest rung is at 0.
export function lengthScale(levels: readonly number[], lengths: readonly number[]): LengthScale {
  const longest = Math.max(1, ...levels, ...lengths);
  const lowest = Math.min(longest, ...levels.filter((level) => level > 0));
  if (longest <= MAX_LINEAR * lowest) return { longest, isLog: false, part: (length) => length / longest };
  const floor = lowest / 2;
  return { longest, isLog: true, part: (length) => Math.log(Math.max(length, floor) / floor) / Math.log(longest / floor) };
}

const DAY = 86400;

// Round times from 0 to `latest` seconds, at most `count` after 0.
export function timeTicks(latest: number, count: number): number[] {
  const least = latest / count;
  const step = TIME_STEPS.find((one) => one <= DAY && one >= least) ?? DAY * Math.ceil(least / DAY);
  return Array.from({ length: Math.floor(latest / step) + 1 }, (_, at) => at * step);
}
