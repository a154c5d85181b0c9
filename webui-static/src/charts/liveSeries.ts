// Metric series of running trials: loaded once, then only the points after the newest ones.
import { useRef } from 'preact/hooks';
import * as api from '../api';
import { useLive, type Live } from '../live';
import type { MetricSeries } from '../wire';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

// The series with the points of `newer`, which are all later. The first differences of `newer` count from zero and
// from its own first time, so they are converted.
function append(older: MetricSeries, newer: MetricSeries): MetricSeries {
  const [batch = 0, ...batches] = newer.batches;
  const [millisecond = 0, ...milliseconds] = newer.milliseconds;
  const between = Date.parse(newer.firstTime ?? '') - Date.parse(older.firstTime ?? '') - sum(older.milliseconds);
  return {
    ...older,
    batches: [...older.batches, batch - sum(older.batches), ...batches],
    values: [...older.values, ...newer.values],
    milliseconds: [...older.milliseconds, Number.isFinite(between) ? between + millisecond : 0, ...milliseconds],
  };
}

// Adds later points to series, and series that are new.
export function merge(older: readonly MetricSeries[], newer: readonly MetricSeries[]): MetricSeries[] {
  const key = ({ trialId, group, name }: MetricSeries): string => [trialId, group, name].join(' ');
  const rest = new Map(newer.filter(({ batches }) => batches.length > 0).map((series) => [key(series), series]));
  const merged = older.map((series) => {
    const more = rest.get(key(series));
    rest.delete(key(series));
    return more ? append(series, more) : series;
  });
  return [...merged, ...rest.values()];
}

// The newest batch of a trial's group; 0 without points.
export const lastBatch = (all: readonly MetricSeries[], trialId: number, group: string): number =>
  Math.max(0, ...all.filter((series) => series.trialId === trialId && series.group === group).map(({ batches }) => sum(batches)));

// Groups of trials with new points; 'all' when everything must be loaded.
type Stale = Map<string, { trialId: number; group: string }> | 'all';

// Series of trials within a range of batches. Without a range only new points are requested, until the series have
// twice the requested number of points.
export function useSeries(ids: readonly number[], points: number, range: readonly [number, number] | undefined, gapMs: number): Live<MetricSeries[]> {
  const key = `series ${ids.join()} ${range?.join() ?? ''}`;
  const held = useRef<{ key: string; data: MetricSeries[]; stale: Stale }>({ key: '', data: [], stale: 'all' });
  const load = async (signal: AbortSignal): Promise<MetricSeries[]> => {
    const { data, stale } = held.current;
    const full = range || stale === 'all' || held.current.key !== key || data.some(({ values }) => values.length > 2 * points);
    held.current = { key, data, stale: new Map() };
    try {
      if (full) {
        held.current.data = await api.columns(ids, { points, from: range?.[0], to: range?.[1] }, signal);
      } else {
        const parts = [...stale.values()].map(({ trialId, group }) =>
          api.columns([trialId], { points, group, from: lastBatch(data, trialId, group) + 1 }, signal),
        );
        held.current.data = merge(data, (await Promise.all(parts)).flat());
      }
    } catch (cause) {
      held.current.stale = 'all';
      throw cause;
    }
    return held.current.data;
  };
  return useLive(
    key,
    load,
    (change) => {
      if (change !== 'everything' && (change.kind !== 'metrics' || !ids.includes(change.trialId ?? 0))) return false;
      const { stale } = held.current;
      // A change without a group: points were removed, because a trial went back to a checkpoint.
      if (change === 'everything' || !change.group || !change.trialId) held.current.stale = 'all';
      else if (stale !== 'all') stale.set(`${change.trialId} ${change.group}`, { trialId: change.trialId, group: change.group });
      return true;
    },
    gapMs,
  );
}
