// Owns how metric groups of trials become charts: one panel a metric, its groups and trials laid over each other; the
// x axis; smoothing. Pure.
import type { MetricSeries } from '../wire';

export type Axis = 'batches' | 'time' | 'epochs';

export interface Series {
  label: string; // "training"; "validation (validation_loss)" where the metric is not called like its panel
  group: string;
  trial: number;
  place: number; // of its trial among those asked for: the same color in every panel
  x: number[]; // in the axis's unit, rising: batches, seconds since the trial's start, epochs
  y: (number | null)[]; // null: not a finite number, drawn as a gap
  steps: number[]; // batches of each point
}

export interface Panel {
  name: string;
  series: Series[];
}

// One trial's metrics.
export interface Source {
  trial: number;
  name?: string; // instead of "trial 12"
  startMs: number;
  metrics: MetricSeries[];
}

// What the harness reports about the machine, not about the model.
export const kSystemGroups: readonly string[] = ['gpu', 'cpu', 'memory', 'disk', 'network', 'timing'];

// "validation_loss" of the group validation is the loss; measurements of the machine keep their names.
export function panelName(group: string, name: string): string {
  if (kSystemGroups.includes(group)) return name;
  for (const prefix of [`${group}_`, group === 'validation' ? 'val_' : '']) {
    if (prefix !== '' && name.startsWith(prefix) && name.length > prefix.length)
      return name.slice(prefix.length);
  }
  return name;
}

// What the differences of a series add up to.
function sums(differences: readonly number[], start = 0): number[] {
  let at = start;
  return differences.map((difference) => (at += difference));
}

const toValues = (one: MetricSeries): (number | null)[] =>
  one.values.map((value) => (typeof value === 'number' && Number.isFinite(value) ? value : null));

// Epochs at these batches, between the points where the group told them.
function epochsAt(told: MetricSeries, steps: readonly number[]): (number | undefined)[] {
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

// Where the points of a series lie on the axis; nothing where it cannot be told.
function places(one: MetricSeries, steps: number[], axis: Axis, source: Source): (number | undefined)[] {
  if (axis === 'batches') return steps;
  if (axis === 'time') {
    const first = Date.parse(one.firstTime ?? '');
    return sums(one.milliseconds, first - source.startMs).map((ms) => (Number.isFinite(ms) ? ms / 1000 : undefined));
  }
  const told = ['epochs', 'epoch']
    .map((name) => source.metrics.find((other) => other.group === one.group && other.name === name))
    .find((found) => found !== undefined);
  return told ? epochsAt(told, steps) : [];
}

const kGroupOrder = ['training', 'validation'];

function groupRank(group: string): number {
  const at = kGroupOrder.indexOf(group);
  return at < 0 ? kGroupOrder.length : at;
}

function label(source: Source, many: boolean, group: string, name: string, panel: string): string {
  const own = panel === name ? group : `${group} (${name})`;
  return many ? `${source.name ?? `trial ${source.trial}`} · ${own}` : own;
}

// The points of a series in order of x: a trial that ran again may have gone back.
function inOrder(one: Series): Series {
  if (one.x.every((x, i) => i === 0 || (one.x[i - 1] ?? 0) <= x)) return one;
  const order = one.x.map((_, i) => i).sort((a, b) => (one.x[a] ?? 0) - (one.x[b] ?? 0));
  const pick = <T>(from: T[]): T[] => order.map((i) => from[i] as T);
  return { ...one, x: pick(one.x), y: pick(one.y), steps: pick(one.steps) };
}

// Panels in alphabetical order; in each, trials in the order given, training before validation before other groups.
export function toPanels(sources: Source[], axis: Axis = 'batches'): Panel[] {
  const panels = new Map<string, Series[]>();
  for (const [place, source] of sources.entries()) {
    for (const metric of source.metrics) {
      const steps = sums(metric.batches);
      const x = places(metric, steps, axis, source);
      const y = toValues(metric);
      const kept = steps.map((_, i) => i).filter((i) => x[i] !== undefined);
      if (kept.length === 0) continue;
      const panel = panelName(metric.group, metric.name);
      const own = panels.get(panel) ?? [];
      panels.set(panel, own);
      own.push({
        label: label(source, sources.length > 1, metric.group, metric.name, panel),
        group: metric.group,
        trial: source.trial,
        place,
        x: kept.map((i) => x[i] as number),
        y: kept.map((i) => y[i] ?? null),
        steps: kept.map((i) => steps[i] as number),
      });
    }
  }
  return [...panels]
    .map(([name, all]) => ({
      name,
      series: all
        .map(inOrder)
        .sort(
          (a, b) =>
            a.place - b.place ||
            groupRank(a.group) - groupRank(b.group) ||
            a.label.localeCompare(b.label),
        ),
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

// Exponential moving average (weight of the past in [0, 1)), corrected for its start (Adam, arXiv:1412.6980, §3);
// gaps stay gaps.
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

// The batches between two places of the axis, over all series of a panel.
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

export interface XY {
  x: readonly number[]; // rising
  y: readonly (number | null)[];
}

// Many series with places of their own on places that they share, two in each of `cells` cells: all places of all series
// together would be too many to draw. A cell holds a series' smallest and largest value there, in their order, so no peak
// is lost; where a series has none it is undefined, and its line passes over. The first table is that of the places.
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
        // The one of both that goes is the one on the same side.
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
