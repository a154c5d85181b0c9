// Owns how metric groups of trials become charts: one panel a metric, its groups and trials laid over each other; the
// x axis; smoothing. Pure.
import type { DataPoint, JsonValue, MetricGroup } from '../wire';

export type Axis = 'batches' | 'time' | 'epochs';

export interface Series {
  label: string; // "training"; "validation (validation_loss)" where the metric is not called like its panel
  group: string;
  trial: number;
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
  startMs: number;
  metrics: MetricGroup[];
}

// What the harness reports about the machine, not about the model.
export const kSystemGroups: readonly string[] = ['gpu', 'cpu', 'memory', 'disk', 'network', 'timing'];

// "validation_loss" of the group validation is the loss.
export function panelName(group: string, name: string): string {
  for (const prefix of [`${group}_`, group === 'validation' ? 'val_' : '']) {
    if (prefix !== '' && name.startsWith(prefix) && name.length > prefix.length)
      return name.slice(prefix.length);
  }
  return name;
}

function toNumber(value: JsonValue | undefined): number | null | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return null;
  return undefined;
}

// Where a point lies on the axis; nothing when it does not say.
function place(point: DataPoint, axis: Axis, startMs: number): number | undefined {
  if (axis === 'batches') return point.batches;
  if (axis === 'time') return point.time ? (Date.parse(point.time) - startMs) / 1000 : undefined;
  const epoch = point.epoch ?? point.values?.epochs ?? point.values?.epoch;
  return typeof epoch === 'number' ? epoch : undefined;
}

const kGroupOrder = ['training', 'validation'];

function groupRank(group: string): number {
  const at = kGroupOrder.indexOf(group);
  return at < 0 ? kGroupOrder.length : at;
}

function label(source: Source, many: boolean, group: string, name: string, panel: string): string {
  const own = panel === name ? group : `${group} (${name})`;
  return many ? `trial ${source.trial} · ${own}` : own;
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
  const panels = new Map<string, Map<string, Series>>();
  for (const source of sources) {
    for (const { group, data } of source.metrics) {
      for (const point of data) {
        const x = place(point, axis, source.startMs);
        if (x === undefined) continue;
        for (const [name, raw] of Object.entries(point.values ?? {})) {
          const value = toNumber(raw);
          if (value === undefined) continue;
          const panel = panelName(group, name);
          const own = panels.get(panel) ?? new Map<string, Series>();
          panels.set(panel, own);
          const id = `${source.trial}.${group}.${name}`;
          let one = own.get(id);
          if (!one) {
            one = {
              label: label(source, sources.length > 1, group, name, panel),
              group,
              trial: source.trial,
              x: [],
              y: [],
              steps: [],
            };
            own.set(id, one);
          }
          one.x.push(x);
          one.y.push(value);
          one.steps.push(point.batches);
        }
      }
    }
  }
  const place_of = new Map(sources.map((source, i) => [source.trial, i]));
  return [...panels]
    .map(([name, all]) => ({
      name,
      series: [...all.values()]
        .map(inOrder)
        .sort(
          (a, b) =>
            (place_of.get(a.trial) ?? 0) - (place_of.get(b.trial) ?? 0) ||
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
