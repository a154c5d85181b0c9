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

// The mean curve of a group with its band, where at least half of the runs have values: with fewer it would jump from run
// to run. The part where some runs have ended is a curve of its own: it may jump there.
function mean(all: readonly Series[], group: GroupOf, hasBand: boolean): Series[] {
  const first = all[0] as Series;
  const x = positions(all);
  // Batches of the positions, by the first curve.
  const steps = x.map((at) => Math.round(valueAt({ ...first, y: first.steps }, at) ?? first.steps[first.steps.length - 1] ?? 0));
  const out: Required<Pick<Series, 'y' | 'low' | 'high'>> = { y: [], low: [], high: [] };
  for (const at of x) {
    const values = all.map((one) => valueAt(one, at)).filter((value) => value !== undefined);
    const own = 2 * values.length >= all.length ? spreadOf(values) : undefined;
    const edges = hasBand ? own : undefined;
    out.y.push(own ? own.mean : null);
    // No further than the values: a learning rate has no band below zero.
    out.low.push(edges ? Math.max(Math.min(...values), edges.mean - edges.deviation) : null);
    out.high.push(edges ? Math.min(Math.max(...values), edges.mean + edges.deviation) : null);
  }
  const firstEnd = Math.min(...all.map((one) => one.x[one.x.length - 1] ?? Infinity));
  const later = x.findIndex((at) => at > firstEnd);
  const part = (from: number, to: number | undefined, note = ''): Series => ({
    ...first,
    label: `${group.label}${note} · ${first.group} (${all.length})`,
    place: group.place,
    x: x.slice(from, to),
    y: out.y.slice(from, to),
    low: out.low.slice(from, to),
    high: out.high.slice(from, to),
    steps: steps.slice(from, to),
  });
  if (later < 1 || (out.y[later] ?? null) === null) return [part(0, undefined)];
  return [part(0, later), { ...part(later - 1, undefined, ', some ended'), isPartial: true }];
}

// The curves of a panel, with those in one whose mean has two parts.
export const whole = (series: readonly Series[]): Series[] =>
  series.flatMap((one) => {
    if (one.isPartial) return [];
    const more = series.find(({ isPartial, place, group }) => isPartial && place === one.place && group === one.group);
    const joined = <T,>(own: readonly T[], later: readonly T[] = []): T[] => [...own, ...later.slice(1)];
    return more ? { ...one, x: joined(one.x, more.x), y: joined(one.y, more.y), low: joined(one.low ?? [], more.low), high: joined(one.high ?? [], more.high) } : one;
  });

// The panel with one series for each group of trials and group of metrics. With validation only that has bands or runs:
// more of them over each other would be fog. `hasRuns`: the runs are drawn instead of bands.
export function toBands(panel: Panel, groupOf: (trial: number) => GroupOf | undefined, hasRuns = false): Panel {
  const found = new Map<string, { group: GroupOf; all: Series[] }>();
  for (const series of panel.series) {
    const group = groupOf(series.trial);
    if (!group) continue;
    const key = `${group.place} ${series.group}`;
    const own = found.get(key) ?? { group, all: [] };
    own.all.push(series);
    found.set(key, own);
  }
  const isValidated = panel.series.some(({ group }) => group === 'validation');
  const isSurrounded = (all: readonly Series[]): boolean => !isValidated || all[0]?.group === 'validation';
  const groups = [...found.values()];
  return {
    ...panel,
    series: groups.flatMap(({ group, all }) => mean(all, group, !hasRuns && isSurrounded(all))),
    ...(hasRuns ? { behind: groups.flatMap(({ group, all }) => (isSurrounded(all) && all.length > 1 ? all.map((one) => ({ ...one, place: group.place })) : [])) } : {}),
  };
}
