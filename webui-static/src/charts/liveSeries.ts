// Metric series of running trials: loaded once, then only the points after the newest ones.
import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import * as api from '../api';
import type { Change, ServerEvent } from '../events';
import { useLive, type Live } from '../live';
import type { MetricSeries } from '../wire';
import { sums } from './series';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

// The series with those points of `newer` that are later than its own. The first differences of `newer` count from
// zero and from its own first time, so they are converted.
function append(older: MetricSeries, newer: MetricSeries): MetricSeries {
  const last = sum(older.batches);
  let [batch, at] = [newer.batches[0] ?? 0, 0];
  let elapsed = newer.milliseconds[0] ?? 0;
  while (at < newer.batches.length && batch <= last) {
    at++;
    batch += newer.batches[at] ?? 0;
    elapsed += newer.milliseconds[at] ?? 0;
  }
  if (at >= newer.batches.length) return older;
  const between = Date.parse(newer.firstTime ?? '') - Date.parse(older.firstTime ?? '') - sum(older.milliseconds);
  return {
    ...older,
    batches: [...older.batches, batch - last, ...newer.batches.slice(at + 1)],
    values: [...older.values, ...newer.values.slice(at)],
    milliseconds: [...older.milliseconds, Number.isFinite(between) ? between + elapsed : 0, ...newer.milliseconds.slice(at + 1)],
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

// Whether the report of an event is before the newest point of its group and not among the points: a request for later ones
// would leave it out. An event may arrive after its point.
const isBetween = (all: readonly MetricSeries[], { trialId = 0, group = '', batches = Infinity }: ServerEvent): boolean =>
  batches < lastBatch(all, trialId, group) && !all.some((series) => series.trialId === trialId && series.group === group && sums(series.batches).includes(batches));

// Trials with new points, by group.
type Stale = Map<string, Set<number>>;

const mark = (stale: Stale, group: string, trials: Iterable<number>): void => void stale.set(group, new Set([...(stale.get(group) ?? []), ...trials]));

// One request per group: its trials, and the first batch that one of them lacks. merge() drops what others have.
export function requestsOf(stale: Stale, data: readonly MetricSeries[]): { group: string; trialIds: number[]; from: number }[] {
  return [...stale].map(([group, trials]) => {
    const trialIds = [...trials].sort((a, b) => a - b);
    return { group, trialIds, from: 1 + Math.min(...trialIds.map((id) => lastBatch(data, id, group))) };
  });
}

// Loaded series, and the events that have outdated some of them. One load at a time: a further one replaces it.
export class Held {
  trials = new Set<number>(); // with loaded series
  data: MetricSeries[] = [];
  private coming = new Set<number>(); // trials of the present load, without those that were outdated since its start
  private stale: Stale = new Map();
  private asked: Stale = new Map(); // of the present load

  // `scope`: range and number of points.
  constructor(readonly scope: string) {}

  outdate(change: Change): void {
    if (change === 'everything') {
      this.trials.clear();
      this.coming.clear();
    } else if (!change.group || !change.trialId || isBetween(this.data, change)) {
      // Without a group: points were removed, because a trial went back to a checkpoint.
      this.trials.delete(change.trialId ?? 0);
      this.coming.delete(change.trialId ?? 0);
    } else mark(this.stale, change.group, [change.trialId]);
  }

  // Starts a load of these trials. Returns those with new points, also for a load that has not ended.
  begin(ids: readonly number[]): Stale {
    // Events of other trials are not handled.
    this.trials = new Set(ids.filter((id) => this.trials.has(id)));
    this.coming = new Set(ids);
    for (const [group, trials] of this.stale) mark(this.asked, group, trials);
    this.stale = new Map();
    return this.asked;
  }

  end(data: MetricSeries[]): void {
    this.data = data;
    this.trials = this.coming;
    this.coming = new Set();
    this.asked = new Map();
  }
}

// A part of the series is shown before the others if they take longer than this time.
const EARLY_MS = 200;

// Series of trials within a range of batches; a part of many may be shown before the others are loaded. Series of trials that stay are kept when
// `ids` changes. Without a range only new points are requested, until a series has twice the requested points.
export function useSeries(ids: readonly number[], points: number, range: readonly [number, number] | undefined, gapMs: number): Live<MetricSeries[]> {
  const scope = `${range?.join() ?? ''} ${points}`;
  const held = useRef<Held>(new Held(scope));
  const wanted = useRef(ids);
  wanted.current = ids;
  const early = useSignal<MetricSeries[]>([]);
  const load = async (signal: AbortSignal): Promise<MetricSeries[]> => {
    if (held.current.scope !== scope) held.current = new Held(scope);
    const own = held.current;
    const stale = own.begin(ids);
    const long = new Set(own.data.filter(({ values }) => values.length > 2 * points).map(({ trialId }) => trialId));
    const whole = ids.filter((id) => !own.trials.has(id) || long.has(id) || (range !== undefined && [...stale.values()].some((all) => all.has(id))));
    const loaded = new Set(whole);
    const part = new Map([...stale].map(([group, all]) => [group, new Set([...all].filter((id) => own.trials.has(id) && !loaded.has(id) && ids.includes(id)))] as const).filter(([, all]) => all.size > 0));
    const begun = performance.now();
    const parts: MetricSeries[] = [];
    const arrived = (series: MetricSeries[]): void => {
      parts.push(...series);
      if (performance.now() - begun > EARLY_MS && !signal.aborted) early.value = [...kept, ...parts];
    };
    const kept = own.data.filter(({ trialId }) => ids.includes(trialId) && !loaded.has(trialId));
    try {
      const [fresh, newer] = await Promise.all([
        api.columns(whole, { points, from: range?.[0], to: range?.[1] }, signal, arrived),
        Promise.all(requestsOf(part, own.data).map(({ trialIds, ...query }) => api.columns(trialIds, { points, ...query }, signal))),
      ]);
      // Another load has begun after an abort.
      if (!signal.aborted) own.end(merge([...kept, ...fresh], newer.flat()));
    } finally {
      if (!signal.aborted) early.value = [];
    }
    return own.data;
  };
  const live = useLive(
    `series ${ids.join()} ${scope}`,
    load,
    (change) => {
      if (change !== 'everything' && (change.kind !== 'metrics' || !wanted.current.includes(change.trialId ?? 0))) return false;
      held.current.outdate(change);
      return true;
    },
    gapMs,
  );
  // Until the series are there: a part of them, or those that were shown before.
  const shown = useRef<MetricSeries[]>([]);
  if (live.data) shown.current = live.data;
  const known = useMemo(() => shown.current.filter(({ trialId }) => ids.includes(trialId)), [ids.join(), shown.current]);
  const data = live.data ?? (early.value.length > 0 ? early.value : known);
  return data === live.data || data.length === 0 ? live : { ...live, data };
}
