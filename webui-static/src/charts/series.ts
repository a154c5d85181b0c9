// Converts metric groups of trials to charts: one panel per metric with all groups and
// trials; x axes; smoothing. Pure.
import { axisNumber, duration, metric } from '../format';
import type { MetricSeries } from '../wire';

// "batches", "time", "epochs", or the name of a metric.
export type Axis = string;

// Pixels of a chart's height, by size.
export const HEIGHTS = { small: 152, medium: 208, roomy: 216, large: 400 } as const;
export type Size = keyof typeof HEIGHTS;
// "roomy" is not offered: few charts on a wide page have it by themselves.
export const SIZES: readonly Size[] = ['small', 'medium', 'large'];

export interface Look {
  axis: Axis;
  log: boolean | undefined; // y axis; undefined: for learning rates that are wide apart
  whole?: boolean; // the y axis has all values, also those at the begin that are far from the others
  smoothing: number | undefined; // weight of the past, in [0, 1); undefined: only where the curves are noisy
  isCentered?: boolean; // smoothing looks forward as well as back
  size?: Size;
  height?: number; // pixels; default: that of the size
}

export interface Series {
  label: string; // "training", or "validation (validation_loss)" if the metric's name is not the panel's
  group: string;
  trial: number;
  place: number; // index of the trial; determines the color in every panel
  x: number[]; // in axis units, ascending: batches, seconds since the trial's start, epochs
  y: (number | null)[]; // null: not finite, drawn as a gap
  steps: number[]; // batches of each point
  low?: (number | null)[]; // of a group of trials: mean minus and plus the deviation
  high?: (number | null)[];
  isPartial?: boolean; // the later part of a mean, without the runs that end before
}

export interface Panel {
  name: string;
  title?: string | undefined; // shown; default: the name
  range?: [number, number] | undefined; // of the y axis; default: that of the values
  series: Series[];
  behind?: readonly Series[]; // pale, behind the others: their place is that of a group, or NO_PLACE
}

// The place of a curve without a color.
export const NO_PLACE = -1;

// The metrics of one trial.
export interface Source {
  trial: number;
  name?: string | undefined; // undefined: labels name the group only
  startMs: number;
  metrics: MetricSeries[];
}

export const titleOf = ({ title, name }: Pick<Panel, 'title' | 'name'>): string => title ?? name;

// A position on an x axis as text.
export const onAxis = (axis: Axis, value: number): string =>
  axis === 'time' ? duration(value) : axisNumber(Number(value.toPrecision(8)));

// Units of times on an axis, each up to its greatest value in seconds.
const UNITS: readonly { most: number; seconds: number; name: string }[] = [
  { most: 120, seconds: 1, name: 's' },
  { most: 7200, seconds: 60, name: 'min' },
  { most: 172_800, seconds: 3600, name: 'h' },
  { most: Infinity, seconds: 86_400, name: 'd' },
];
const DAY = 86_400;
// Seconds between ticks: round in their unit.
export const TIME_STEPS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 50 * DAY, 100 * DAY];

// A range of values in sight that is larger than this part of the whole one gains too little.
export const LEAST_GAIN = 0.6;

// Times of an axis in one unit: "30 s", "1.5 min", "2 h".
export const timeTexts = (seconds: readonly number[]): string[] => {
  const longest = Math.max(0, ...seconds.map(Math.abs));
  const unit = UNITS.find(({ most }) => longest <= most) ?? { seconds: 1, name: 's' };
  return seconds.map((one) => (one === 0 ? '0' : `${Number((one / unit.seconds).toPrecision(6))} ${unit.name}`));
};

// Labels of the ticks of an x axis. Thousands are "k" where all digits would not fit.
const LONG_TICK = 10_000;
export const tickTexts = (axis: Axis, ticks: readonly number[]): string[] => {
  if (axis === 'time') return timeTexts(ticks);
  const isLong = Math.max(...ticks.map(Math.abs)) >= LONG_TICK;
  const short = (value: number): string => (Math.abs(value) >= 1e6 ? `${Number((value / 1e6).toPrecision(6))}M` : value === 0 ? '0' : `${Number((value / 1000).toPrecision(6))}k`);
  return ticks.map((value) => (isLong ? short(value) : onAxis(axis, value)));
};

// Numbers of one axis: all have an exponent if one needs it. Ticks without a text are null.
export function uniform(values: readonly (number | null)[], plain: (value: number) => string = metric): string[] {
  const texts = values.map((value) => (value === null ? '' : plain(value)));
  return texts.some((text) => text.includes('e')) ? values.map((value, at) => (value ? Number(value.toPrecision(4)).toExponential() : (texts[at] ?? ''))) : texts;
}

// Groups that describe the machine, not the model.
export const SYSTEM_GROUPS: readonly string[] = ['gpu', 'cpu', 'memory', 'disk', 'network', 'timing'];

// Removes the group from the metric's name: "validation_loss" becomes "loss".
// System metrics keep their names.
export function panelName(group: string, name: string): string {
  if (SYSTEM_GROUPS.includes(group)) return name;
  for (const prefix of [`${group}_`, group === 'validation' ? 'val_' : '']) {
    if (prefix !== '' && name.startsWith(prefix) && name.length > prefix.length)
      return name.slice(prefix.length);
  }
  return name;
}

// The prefix sums of the differences.
export function sums(differences: readonly number[], start = 0): number[] {
  let at = start;
  return differences.map((difference) => (at += difference));
}

const toValues = (one: MetricSeries): (number | null)[] =>
  one.values.map((value) => (typeof value === 'number' && Number.isFinite(value) ? value : null));

// Values of a metric at the given batches, interpolated between its points.
function valuesAt(told: MetricSeries, steps: readonly number[]): (number | undefined)[] {
  const known = sums(told.batches);
  const epochs = toValues(told);
  let i = 0;
  return steps.map((step) => {
    while (i < known.length && (known[i] ?? 0) < step) i++;
    const [right, after] = [known[i], epochs[i]];
    if (right === undefined || after == null) return undefined;
    const [left, before] = [known[i - 1], epochs[i - 1]];
    if (right === step || left === undefined || before == null) return right === step ? after : undefined;
    return before + ((after - before) * (step - left)) / (right - left);
  });
}

// The positions of a series' points on the axis; undefined where unknown.
function places(one: MetricSeries, steps: number[], axis: Axis, source: Source): (number | undefined)[] {
  if (axis === 'batches') return steps;
  if (axis === 'time') {
    const first = Date.parse(one.firstTime ?? '');
    return sums(one.milliseconds, first - source.startMs).map((ms) => (Number.isFinite(ms) ? ms / 1000 : undefined));
  }
  const of = (name: string, own: boolean): MetricSeries | undefined =>
    source.metrics.find((other) => (own ? other.group === one.group : true) && (other.name === name || panelName(other.group, other.name) === name));
  const names = axis === 'epochs' ? ['epochs', 'epoch'] : [axis];
  const told = names.map((name) => of(name, true)).find((found) => found !== undefined) ?? (axis === 'epochs' ? undefined : of(axis, false));
  return told ? valuesAt(told, steps) : [];
}

const GROUP_ORDER = ['training', 'validation'];

function groupRank(group: string): number {
  const at = GROUP_ORDER.indexOf(group);
  return at < 0 ? GROUP_ORDER.length : at;
}

// Counters that libraries report along with metrics. They serve as axes and are not drawn.
export const COUNTERS: readonly string[] = ['batches', 'epochs', 'epoch'];

// Groups by names of panels.
export type Leads = ReadonlyMap<string, string>;

// The group of each metric that has the panel with its name where groups have panels of their own: validation, which is
// compared, or else the first one.
export function leadsOf(metrics: readonly MetricSeries[]): Leads {
  const rank = (group: string | undefined): number => (group === 'validation' ? -1 : groupRank(group ?? ''));
  const leads = new Map<string, string>();
  for (const { group, name } of metrics) {
    const panel = panelName(group, name);
    if (!COUNTERS.includes(panel) && (!leads.has(panel) || rank(group) < rank(leads.get(panel)))) leads.set(panel, group);
  }
  return leads;
}

function label(source: Source, group: string, name: string, panel: string): string {
  const own = panel === name ? group : `${group} (${name})`;
  return source.name === undefined ? own : `${source.name} · ${own}`;
}

// Sorts the points by x: a trial that was restarted may have gone back.
function inOrder(one: Series): Series {
  if (one.x.every((x, i) => i === 0 || (one.x[i - 1] ?? 0) <= x)) return one;
  const order = one.x.map((_, i) => i).sort((a, b) => (one.x[a] ?? 0) - (one.x[b] ?? 0));
  const pick = <T>(from: T[]): T[] => order.map((i) => from[i] as T);
  return { ...one, x: pick(one.x), y: pick(one.y), steps: pick(one.steps) };
}

// Panels in alphabetical order. Within a panel, trials by length, so that a short curve lies over a long one, then in
// the given order; training, validation, other groups. With `leads` other groups than these have panels of their own, "training loss".
export function toPanels(sources: Source[], axis: Axis = 'batches', leads?: Leads): Panel[] {
  const panels = new Map<string, Series[]>();
  for (const [place, source] of sources.entries()) {
    for (const metric of source.metrics) {
      const steps = sums(metric.batches);
      const x = places(metric, steps, axis, source);
      const y = toValues(metric);
      const kept = steps.map((_, i) => i).filter((i) => x[i] !== undefined);
      if (kept.length === 0) continue;
      const panel = panelName(metric.group, metric.name);
      const title = metric.group === (leads?.get(panel) ?? metric.group) ? panel : `${metric.group} ${panel}`;
      const own = panels.get(title) ?? [];
      panels.set(title, own);
      own.push({
        label: label(source, metric.group, metric.name, panel),
        group: metric.group,
        trial: source.trial,
        place,
        x: kept.map((i) => x[i] as number),
        y: kept.map((i) => y[i] ?? null),
        steps: kept.map((i) => steps[i] as number),
      });
    }
  }
  const ends = new Map<number, number>();
  for (const { trial, x } of [...panels.values()].flat()) ends.set(trial, Math.max(ends.get(trial) ?? 0, x[x.length - 1] ?? 0));
  return [...panels]
    .map(([name, all]) => ({
      name,
      series: all
        .map(inOrder)
        .sort(
          (a, b) =>
            (ends.get(b.trial) ?? 0) - (ends.get(a.trial) ?? 0) ||
            a.place - b.place ||
            groupRank(a.group) - groupRank(b.group) ||
            a.label.localeCompare(b.label),
        ),
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

// The panels with those of the objective first: the metric of that name, then the panel that contains it. Metrics of
// parts of a model ("layer1/norm") are last.
export function ledBy(panels: readonly Panel[], objective: string | undefined): Panel[] {
  const leads = new Set(objective ? [objective, panelName('validation', objective)] : []);
  const rank = ({ name }: Panel): number => (leads.has(name) ? 0 : name.includes('/') ? 2 : 1);
  return [...panels].sort((a, b) => rank(a) - rank(b));
}

// Exponential moving average with bias correction (Adam, arXiv:1412.6980, section 3). `weight` is that of the
// past, in [0, 1). Gaps stay gaps.
export function smooth(y: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...y];
  let sum = 0;
  let mass = 0;
  return y.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return sum / mass;
  });
}

// Sums over values of one side of each value, itself included: of w^k, k w^k, k^2 w^k, w^k y and k w^k y, with the distance
// k of each value in points.
interface Moments {
  mass: number;
  first: number;
  second: number;
  sum: number;
  tilt: number;
}

function momentsOf(y: readonly (number | null)[], weight: number): Moments[] {
  let own: Moments = { mass: 0, first: 0, second: 0, sum: 0, tilt: 0 };
  return y.map((value) => {
    const { mass, first, second, sum, tilt } = own;
    if (value !== null)
      own = { mass: weight * mass + 1, first: weight * (first + mass), second: weight * (second + 2 * first + mass), sum: weight * sum + value, tilt: weight * (tilt + sum) };
    return own;
  });
}

// Each value replaced by the height of the line through the values around it, weighted by `weight` to the power of their
// distance (local linear regression, Cleveland, JASA 74, 1979): it does not lag behind a curve that falls or rises, also
// at its ends.
function linesThrough(y: readonly (number | null)[], weight: number): (number | null)[] {
  const past = momentsOf(y, weight);
  const future = momentsOf([...y].reverse(), weight).reverse();
  return y.map((value, at) => {
    const [before, after] = [past[at], future[at]];
    if (value === null || !before || !after) return null;
    const [mass, first, second] = [before.mass + after.mass - 1, after.first - before.first, before.second + after.second];
    const determinant = mass * second - first * first;
    return determinant <= 0 ? value : (second * (before.sum + after.sum - value) - first * (after.tilt - before.tilt)) / determinant;
  });
}

// Of this weight on, the first REACH / (1 - weight) values are smoothed less.
const WIDE = 0.75;
const REACH = 4;

// The lines through the values around each, and those through what they leave over: single lines would pass a curve that bends
// on its inner side (twicing, Tukey, Exploratory Data Analysis, 1977, section 16). The first values of a loss, which fall
// within few points, change gradually from half of the smoothing to all of it.
export function smoothCentered(y: readonly (number | null)[], weight: number): (number | null)[] {
  const lines = linesThrough(y, weight);
  const rest = linesThrough(y.map((value, at) => (value === null ? null : value - (lines[at] ?? 0))), weight);
  const first = weight > WIDE ? smoothCentered(y, 2 * weight - 1) : undefined;
  return lines.map((value, at) => {
    if (value === null) return null;
    const own = value + (rest[at] ?? 0);
    const part = Math.min(1, (at * (1 - weight)) / REACH);
    return first ? part * own + (1 - part) * (first[at] ?? own) : own;
  });
}

// The range of batches between two axis positions, over all series of a panel.
export function stepsBetween(panel: Panel, from: number, to: number): [number, number] | undefined {
  let low = Infinity;
  let high = -Infinity;
  for (const one of panel.series) {
    one.x.forEach((x, i) => {
      if (x < from || x > to) return;
      low = Math.min(low, one.steps[i] ?? low);
      high = Math.max(high, one.steps[i] ?? high);
    });
  }
  return high > low ? [low, high] : undefined;
}

interface XY {
  x: readonly number[]; // ascending
  y: readonly (number | null)[];
}

// Maps series with different x values to a common grid of two positions per cell, because the union of
// all positions would be too many to draw. A cell keeps the minimum and maximum of a series in their
// order, so peaks are preserved. Cells without values are undefined, and lines pass over them. The
// first table holds the positions.
export function onGrid(all: readonly XY[], cells: number): (number | null | undefined)[][] {
  const low = Math.min(...all.map((one) => one.x[0] ?? Infinity));
  const high = Math.max(...all.map((one) => one.x[one.x.length - 1] ?? -Infinity));
  const width = (high - low) / cells || 1;
  const used = new Uint8Array(2 * cells + 2);
  const columns = all.map(({ x, y }) => {
    const out = new Array<number | null | undefined>(2 * cells + 2);
    x.forEach((place, at) => {
      const cell = 2 * Math.floor((place - low) / width);
      const value = y[at];
      const [first, second] = [out[cell], out[cell + 1]];
      if (first === undefined) out[cell] = value;
      else if (second === undefined || value == null || first === null || second === null) out[cell + 1] = value;
      else if (value < Math.min(first, second) || value > Math.max(first, second)) {
        // Replaces the extreme on the same side.
        const rising = first <= second;
        if (value > second === rising) out[cell + 1] = value;
        else [out[cell], out[cell + 1]] = [second, value];
      }
      used[cell] = 1;
      if (out[cell + 1] !== undefined) used[cell + 1] = 1;
    });
    return out;
  });
  const places = [...used.keys()].filter((at) => used[at]);
  return [places.map((at) => low + (at / 2) * width), ...columns.map((column) => places.map((at) => column[at]))];
}

// The panels with every word of a text in their names or titles.
export function matching(panels: readonly Panel[], text: string): Panel[] {
  const words = text.toLowerCase().split(/\s+/);
  return panels.filter((panel) => words.every((word) => `${panel.name} ${titleOf(panel)}`.toLowerCase().includes(word)));
}
