// Hyperparameter importance of a search: the share of the metric's variance that each explains, and the mean
// metric over two of them. Pure.
import type { Trial } from '../wire';
import { flatten, metricOf, position, type Dimension } from './search';

// Numeric values are split into this many groups of equally many trials.
const GROUPS = 4;
// Minimum number of trials for a meaningful estimate.
export const MIN_TRIALS = 6;

export interface Importance {
  name: string;
  share: number; // 0..1 of the metric's variance
  trend: number; // rank correlation with the metric, -1..1; 0 for a choice of words
}

const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);

interface Placed {
  at: number; // on the dimension
  value: number; // of the metric
}

// Metrics of the trials that have a value on the dimension, in the order of that.
const placedOn = (dimension: Dimension, trials: readonly Trial[]): Placed[] =>
  trials
    .map((trial) => ({ at: position(dimension, trial), value: metricOf(trial) }))
    .filter((one): one is Placed => one.value !== undefined && Number.isFinite(one.at))
    .sort((a, b) => a.at - b.at);

// Ranks of numbers; equal ones share the mean of theirs.
function ranksOf(values: readonly number[]): number[] {
  const sorted = [...values].sort((a, b) => a - b);
  const [first, last] = [new Map<number, number>(), new Map<number, number>()];
  sorted.forEach((value, at) => {
    if (!first.has(value)) first.set(value, at);
    last.set(value, at);
  });
  return values.map((value) => ((first.get(value) ?? 0) + (last.get(value) ?? 0)) / 2);
}

// Spearman's rank correlation of a number with the metric (The Proof and Measurement of Association, 1904).
function trendOf(placed: readonly Placed[]): number {
  const [at, value] = [ranksOf(placed.map((one) => one.at)), ranksOf(placed.map((one) => one.value))];
  const [x, y] = [mean(at), mean(value)];
  const sum = (of: (place: number) => number): number => placed.reduce((all, _, place) => all + of(place), 0);
  const [offX, offY] = [(place: number): number => (at[place] ?? x) - x, (place: number): number => (value[place] ?? y) - y];
  const spread = Math.sqrt(sum((place) => offX(place) ** 2) * sum((place) => offY(place) ** 2));
  return spread > 0 ? sum((place) => offX(place) * offY(place)) / spread : 0;
}

// The metrics in groups of similar values of the dimension.
function groups(placed: readonly Placed[]): number[][] {
  const distinct = new Set(placed.map((one) => one.at)).size;
  const found = new Map<number, number[]>();
  placed.forEach((one, rank) => {
    const group = distinct <= GROUPS ? one.at : Math.floor((rank * GROUPS) / placed.length);
    found.set(group, [...(found.get(group) ?? []), one.value]);
  });
  return [...found.values()];
}

// Epsilon squared of a one-way analysis of variance (Kelley, An Unbiased Correlation Ratio Measure, 1935):
// the share of variance between groups, corrected for chance. Most important first. A hyperparameter that fewer than
// MIN_TRIALS trials have is left out.
export function importance(trials: readonly Trial[], all: readonly Dimension[]): Importance[] {
  const values = trials.map(metricOf).filter((one): one is number => one !== undefined);
  if (values.length < MIN_TRIALS) return [];
  return all
    .map((dimension) => ({ dimension, placed: placedOn(dimension, trials) }))
    .filter(({ placed }) => placed.length >= MIN_TRIALS)
    .map(({ dimension, placed }) => {
      const found = groups(placed);
      const own = found.flat();
      const center = mean(own);
      const total = own.reduce((sum, one) => sum + (one - center) ** 2, 0);
      const within = found.reduce((sum, group) => {
        const middle = mean(group);
        return sum + group.reduce((inner, one) => inner + (one - middle) ** 2, 0);
      }, 0);
      const free = own.length - found.length;
      const chance = free > 0 ? ((found.length - 1) * within) / free : total;
      return { name: dimension.name, share: total > 0 ? Math.max(0, (total - within - chance) / total) : 0, trend: dimension.kind === 'words' ? 0 : trendOf(placed) };
    })
    .sort((a, b) => b.share - a.share);
}

export interface HeatCell {
  count: number;
  mean: number | undefined;
}

// Treats a number as a choice that has at most `most` different values, each of them twice on the average.
export function asChoice(one: Dimension, trials: readonly Trial[], most = 8): Dimension {
  if (one.kind === 'words') return one;
  const numbers = trials.map((trial) => flatten(trial.hparams).get(one.name)).filter((value) => typeof value === 'number');
  const values = [...new Set(numbers)].sort((a, b) => a - b);
  if (values.length > most || 2 * values.length > numbers.length) return one;
  return { name: one.name, kind: 'words', words: values.map((value) => JSON.stringify(value)), min: 0, max: values.length - 1 };
}

// Trials by position on two dimensions; rows start with the highest `y`.
export function heatMap(trials: readonly Trial[], x: Dimension, y: Dimension, most = 8): HeatCell[][] {
  const size = (one: Dimension): number => (one.kind === 'words' ? Math.min(most, one.words.length) : Math.min(most, 6));
  const [columns, rows] = [size(x), size(y)];
  const values = Array.from({ length: rows }, () => Array.from({ length: columns }, (): number[] => []));
  for (const trial of trials) {
    const value = metricOf(trial);
    if (value === undefined) continue;
    const place = (one: Dimension, count: number): number => {
      const at = position(one, trial);
      return one.kind === 'words' ? Math.round(at * (count - 1)) : Math.min(count - 1, Math.floor(at * count));
    };
    values[rows - 1 - place(y, rows)]?.[place(x, columns)]?.push(value);
  }
  return values.map((row) => row.map((own) => ({ count: own.length, mean: own.length > 0 ? mean(own) : undefined })));
}
