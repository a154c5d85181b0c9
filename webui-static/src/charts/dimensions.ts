// Hyperparameters and the searcher metric of trials as axes. Pure.
import type { JsonObject, JsonValue, Trial } from '../wire';
import { metric } from '../format';

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
