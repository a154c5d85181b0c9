// Hyperparameter importance of a search: the share of the metric's variance that each explains, and the mean
// metric over two of them. Pure.
import type { Trial } from '../wire';
import { flatten, metricOf, position, type Dimension } from './dimensions';

// Numeric values are split into this many groups of equally many trials.
const GROUPS = 4;
// Minimum number of trials for a meaningful estimate.
export const MIN_TRIALS = 6;

// The lowest and the highest value of the `count` best trials, or the choices that they have; mixed if the numbers are far from
// each other, or the choices many.
export type BestValues = { count: number } & ({ low: number; high: number } | { words: string[] } | { isMixed: true });

export interface Importance {
  name: string;
  share: number; // 0..1 of the metric's variance
  best: BestValues;
}

const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / Math.max(1, values.length);

interface Placed {
  at: number; // on the dimension
  value: number; // of the metric
  trial: Trial;
}

// Metrics of the trials that have a value on the dimension, in the order of that.
const placedOn = (dimension: Dimension, trials: readonly Trial[]): Placed[] =>
  trials
    .map((trial) => ({ at: position(dimension, trial), value: metricOf(trial), trial }))
    .filter((one): one is Placed => one.value !== undefined && Number.isFinite(one.at))
    .sort((a, b) => a.at - b.at);

// The part of the trials that is the best, at least BEST_TRIALS. Their values are close to each other on up to this part of the
// dimension; on more of it they say nothing.
const BEST_PART = 0.2;
const BEST_TRIALS = 3;
const CLOSE = 0.6;
// Choices of the best trials, of which there are more.
const FEW_WORDS = 2;

function bestOf(dimension: Dimension, placed: readonly Placed[], smallerIsBetter: boolean): BestValues {
  const sorted = [...placed].sort((a, b) => (smallerIsBetter ? a.value - b.value : b.value - a.value));
  const best = sorted.slice(0, Math.max(BEST_TRIALS, Math.round(BEST_PART * placed.length))).sort((a, b) => a.at - b.at);
  const [first, last] = [best[0], best[best.length - 1]];
  if (dimension.kind === 'words') {
    const words = [...new Set(best.map(({ trial }) => String(flatten(trial.hparams).get(dimension.name))))];
    return words.length <= FEW_WORDS && words.length < dimension.words.length ? { count: best.length, words } : { count: best.length, isMixed: true };
  }
  if (!first || !last || last.at - first.at > CLOSE) return { count: best.length, isMixed: true };
  const valueOf = ({ trial }: Placed): number => Number(flatten(trial.hparams).get(dimension.name));
  return { count: best.length, low: valueOf(first), high: valueOf(last) };
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
export function importance(trials: readonly Trial[], all: readonly Dimension[], smallerIsBetter = true): Importance[] {
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
      return { name: dimension.name, share: total > 0 ? Math.max(0, (total - within - chance) / total) : 0, best: bestOf(dimension, placed, smallerIsBetter) };
    })
    .sort((a, b) => b.share - a.share);
}

export interface HeatCell {
  count: number;
  mean: number | undefined;
}

// The cell with the best mean, the first of equal ones.
export function bestCell(cells: readonly (readonly HeatCell[])[], smallerIsBetter: boolean): HeatCell | undefined {
  const sign = smallerIsBetter ? 1 : -1;
  const worth = ({ mean }: HeatCell): number => (mean === undefined ? Infinity : sign * mean);
  const best = cells.flat().reduce((least, cell) => (worth(cell) < worth(least) ? cell : least), { count: 0, mean: undefined });
  return best.count > 0 ? best : undefined;
}

// Treats a number as a choice that has at most `most` different values, each of them twice on the average.
export function asChoice(one: Dimension, trials: readonly Trial[], most = 8): Dimension {
  if (one.kind === 'words') return one;
  const numbers = trials.map((trial) => flatten(trial.hparams).get(one.name)).filter((value) => typeof value === 'number');
  const values = [...new Set(numbers)].sort((a, b) => a - b);
  if (values.length > most || 2 * values.length > numbers.length) return one;
  return { name: one.name, kind: 'words', words: values.map((value) => JSON.stringify(value)), min: 0, max: values.length - 1 };
}

// At most this many cells for the choices of a dimension.
const MOST_CHOICES = 8;

// Trials by position on two dimensions, of which a numeric one has `ranges` cells; rows start with the highest `y`.
export function heatMap(trials: readonly Trial[], x: Dimension, y: Dimension, ranges = 6): HeatCell[][] {
  const size = (one: Dimension): number => (one.kind === 'words' ? Math.min(MOST_CHOICES, one.words.length) : ranges);
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
