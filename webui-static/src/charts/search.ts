// Owns what the pictures of a search are made of: hyperparameters as axes, rungs from where trials ended. Pure.
import type { JsonValue, Trial } from '../wire';
import { isEnded } from '../format';

export interface Dimension {
  name: string;
  kind: 'linear' | 'log' | 'words';
  words: string[]; // of words: in order
  min: number;
  max: number;
}

type Flat = Map<string, JsonValue>;

export function flatten(value: JsonValue | null | undefined, prefix = '', out: Flat = new Map()): Flat {
  if (value === null || value === undefined || typeof value !== 'object' || Array.isArray(value)) return out;
  for (const [name, inner] of Object.entries(value)) {
    if (inner !== null && typeof inner === 'object' && !Array.isArray(inner)) flatten(inner, `${prefix}${name}.`, out);
    else out.set(`${prefix}${name}`, inner);
  }
  return out;
}

const word = (value: JsonValue | undefined): string =>
  value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value);

// The hyperparameters that differ between trials, by name. Positive ranges over a factor of 50 are logarithmic.
export function dimensions(trials: readonly Trial[]): Dimension[] {
  const all = trials.map((trial) => flatten(trial.hparams));
  const names = [...new Set(all.flatMap((one) => [...one.keys()]))].sort();
  const out: Dimension[] = [];
  for (const name of names) {
    const values = all.map((one) => one.get(name));
    const words = [...new Set(values.map(word))];
    if (words.length < 2) continue;
    const numbers = values.filter((value): value is number => typeof value === 'number');
    if (numbers.length < values.length) {
      out.push({ name, kind: 'words', words: words.sort(), min: 0, max: words.length - 1 });
      continue;
    }
    const min = Math.min(...numbers);
    const max = Math.max(...numbers);
    out.push({ name, kind: min > 0 && max / min > 50 ? 'log' : 'linear', words: [], min, max });
  }
  return out;
}

// Where a trial lies on a dimension, 0..1.
export function position(dimension: Dimension, trial: Trial): number {
  const value = flatten(trial.hparams).get(dimension.name);
  if (dimension.kind === 'words') {
    return dimension.max === 0 ? 0 : dimension.words.indexOf(word(value)) / dimension.max;
  }
  return share(dimension, Number(value));
}

export function share(dimension: Pick<Dimension, 'kind' | 'min' | 'max'>, value: number): number {
  const { min, max } = dimension;
  if (max === min) return 0.5;
  if (dimension.kind === 'log') return Math.log(value / min) / Math.log(max / min);
  return (value - min) / (max - min);
}

// A trial's searcher metric, if it has a number.
export function metricOf(trial: Trial): number | undefined {
  const value = trial.searcherMetricValue;
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

// 0 for the best of all values, 1 for the worst, by rank: one outlier does not make all others alike.
export function ranks(trials: readonly Trial[], smallerIsBetter: boolean): Map<number, number> {
  const scored = trials
    .map((trial) => ({ id: trial.id, value: metricOf(trial) }))
    .filter((one): one is { id: number; value: number } => one.value !== undefined)
    .sort((a, b) => (smallerIsBetter ? a.value - b.value : b.value - a.value));
  return new Map(scored.map((one, at) => [one.id, scored.length < 2 ? 0 : at / (scored.length - 1)]));
}

export interface Rung {
  batches: number;
  reached: number;
  ended: number; // trials that ended there
  best: number | undefined; // of those that ended there
}

// The lengths at which trials of a search ended, shortest first. A search without early stopping has one.
export function rungs(trials: readonly Trial[], smallerIsBetter: boolean): Rung[] {
  const levels = [
    ...new Set(
      trials
        .filter((trial) => isEnded(trial.state) && trial.totalBatchesProcessed > 0)
        .map((trial) => trial.totalBatchesProcessed),
    ),
  ].sort((a, b) => a - b);
  return levels.map((batches) => {
    const here = trials.filter((one) => isEnded(one.state) && one.totalBatchesProcessed === batches);
    const values = here.map(metricOf).filter((value): value is number => value !== undefined);
    return {
      batches,
      reached: trials.filter((one) => one.totalBatchesProcessed >= batches).length,
      ended: here.length,
      best: values.length === 0 ? undefined : smallerIsBetter ? Math.min(...values) : Math.max(...values),
    };
  });
}
