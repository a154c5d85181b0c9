// Groups of trials in charts: the mean of their curves, and around it their runs, if they are few, or a band of one
// standard deviation. Pure.
import { spreadOf } from '../workbench/groups';
import { valueAt } from './facts';
import type { Panel, Series } from './series';

export interface GroupOf {
  place: number; // index of the group; determines the color
  label: string;
}

// Runs of a group that are drawn instead of a band, at most.
const FEW = 5;
export const areFew = (runs: readonly number[]): boolean => runs.every((count) => count <= FEW);

// Positions of a mean curve, at most.
const MAX_POSITIONS = 400;

function positions(all: readonly Series[]): number[] {
  const every = [...new Set(all.flatMap(({ x }) => x))].sort((a, b) => a - b);
  if (every.length <= MAX_POSITIONS) return every;
  const step = (every.length - 1) / (MAX_POSITIONS - 1);
  return Array.from({ length: MAX_POSITIONS }, (_, at) => every[Math.round(at * step)] ?? 0);
}

interface Point {
  x: number;
  step: number;
  y: number | null;
  low: number | null;
  high: number | null;
}

// The mean with its band at these positions, where at least half of the runs have values: with fewer it would jump from run
// to run.
function meansOf(all: readonly Series[], at: readonly number[], hasBand: boolean): Point[] {
  const first = all[0] as Series;
  return at.map((x) => {
    // Batches of the positions, by the first curve.
    const step = Math.round(valueAt({ ...first, y: first.steps }, x) ?? first.steps[first.steps.length - 1] ?? 0);
    const values = all.map((one) => valueAt(one, x)).filter((value) => value !== undefined);
    const own = 2 * values.length >= all.length ? spreadOf(values) : undefined;
    const edges = hasBand ? own : undefined;
    return {
      x,
      step,
      y: own ? own.mean : null,
      // No further than the values: a learning rate has no band below zero.
      low: edges ? Math.max(Math.min(...values), edges.mean - edges.deviation) : null,
      high: edges ? Math.min(Math.max(...values), edges.mean + edges.deviation) : null,
    };
  });
}

const lastOf = ({ x }: Series): number => x[x.length - 1] ?? 0;

// The mean curve of a group. From the first end of a run on it is a curve of its own: of the same runs at all positions, at
// least half of them, because each run that leaves a mean makes it jump. It begins at the end of the band before it, without a
// mean there.
function mean(all: readonly Series[], group: GroupOf, hasBand: boolean): Series[] {
  const part = (own: readonly Point[], note = ''): Series => ({
    ...(all[0] as Series),
    label: `${group.label}${note} · ${all[0]?.group} (${all.length})`,
    place: group.place,
    x: own.map(({ x }) => x),
    y: own.map(({ y }) => y),
    low: own.map(({ low }) => low),
    high: own.map(({ high }) => high),
    steps: own.map(({ step }) => step),
  });
  const ends = all.map(lastOf).sort((a, b) => b - a);
  const [firstEnd, lastEnd] = [ends[ends.length - 1] ?? 0, ends[Math.ceil(ends.length / 2) - 1] ?? 0];
  const places = positions(all);
  const before = meansOf(all, places.filter((x) => x <= firstEnd), hasBand);
  const after = meansOf(all.filter((one) => lastOf(one) >= lastEnd), places.filter((x) => x > firstEnd && x <= lastEnd), hasBand);
  if (before.length === 0 || after.length === 0) return [part([...before, ...after])];
  const end = { ...(before[before.length - 1] as Point), y: null };
  return [part(before), { ...part([end, ...after], ', some ended'), isPartial: true }];
}

// The curves of a panel, with those in one whose mean has two parts.
export const whole = (series: readonly Series[]): Series[] =>
  series.flatMap((one) => {
    if (one.isPartial) return [];
    const more = series.find(({ isPartial, place, group }) => isPartial && place === one.place && group === one.group);
    const joined = <T,>(own: readonly T[], later: readonly T[] = []): T[] => [...own, ...later.slice(1)];
    return more ? { ...one, x: joined(one.x, more.x), y: joined(one.y, more.y), low: joined(one.low ?? [], more.low), high: joined(one.high ?? [], more.high) } : one;
  });

// The panel, of one group of metrics, with one series for each group of trials. `hasRuns`: the runs are drawn instead of bands.
export function toBands(panel: Panel, groupOf: (trial: number) => GroupOf | undefined, hasRuns = false): Panel {
  const found = new Map<number, { group: GroupOf; all: Series[] }>();
  for (const series of panel.series) {
    const group = groupOf(series.trial);
    if (!group) continue;
    const own = found.get(group.place) ?? { group, all: [] };
    own.all.push(series);
    found.set(group.place, own);
  }
  const groups = [...found.values()];
  return {
    ...panel,
    series: groups.flatMap(({ group, all }) => mean(all, group, !hasRuns)),
    ...(hasRuns ? { behind: groups.flatMap(({ group, all }) => (all.length > 1 ? all.map((one) => ({ ...one, place: group.place })) : [])) } : {}),
  };
}
