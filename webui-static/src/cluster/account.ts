// The report of slot usage: ranges, days and months, sums, shares and files. Pure.
import { grouped } from '../format';
import type { Capacity, Held, UsedPeriod } from '../calls/usage';
import { average, BYS, COMMANDS, usedSeconds, type By, type Cell } from './held';

export type Range =
  | { kind: 'raw'; fromMs: number; toMs: number } // short range: from individual allocations
  | { kind: 'days' | 'months'; first: string; last: string; fromMs: number; toMs: number };

export const DAY = 86_400_000;
// Longer ranges are shown by month.
const MAX_DAYS = 100;

// Selectable ranges in days, shortest first. An hour is computed from allocations;
// longer ranges are whole UTC days.
const SPANS = { hour: 1 / 24, day: 1, week: 7, month: 30, quarter: 90, year: 365 } as const;
export type Span = keyof typeof SPANS;

const isDate = (text: string | undefined): text is string =>
  /^\d{4}-\d\d-\d\d$/.test(text ?? '') && Number.isFinite(Date.parse(text ?? ''));
export const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

// The range of an address: explicit dates, or a span ending now.
export function rangeOf(query: Record<string, string | undefined>, nowMs: number): Range {
  const span: Span = (Object.keys(SPANS) as Span[]).find((one) => one === query.over) ?? 'week';
  const chosen = isDate(query.from) || isDate(query.to);
  if (!chosen && SPANS[span] <= 1) return { kind: 'raw', fromMs: nowMs - SPANS[span] * DAY, toMs: nowMs };
  const last = isDate(query.to) ? query.to : day(nowMs);
  const first = isDate(query.from) ? query.from : day(Date.parse(last) - (SPANS[chosen ? 'month' : span] - 1) * DAY);
  const [fromMs, endMs] = [Date.parse(first), Date.parse(last) + DAY];
  const kind = endMs - fromMs > MAX_DAYS * DAY ? 'months' : 'days';
  return { kind, first, last, fromMs, toMs: Math.min(endMs, Math.max(nowMs, fromMs)) };
}

// "from 1 to 31 Jan 2020", "from 28 Dec 2019 to 3 Jan 2020", "on 3 Jan 2020"; days of UTC.
export function rangeText({ first, last }: { first: string; last: string }): string {
  const parts = (date: string): string[] => {
    const [, day = '', month = '', year = ''] = new Date(date).toUTCString().split(' ');
    return [String(Number(day)), month, year];
  };
  const [from, to] = [parts(first), parts(last)];
  const until = to.join(' ');
  if (first === last) return `on ${until}`;
  const same = from[2] !== to[2] ? 3 : from[1] !== to[1] ? 2 : 1;
  return `from ${from.slice(0, same).join(' ')} to ${until}`;
}

// Usage beyond the available slots by more than this part is not rounding: the record of slots is incomplete.
const TOLERANCE = 0.01;

// The start of the records if usage or slots are recorded for the last interval only: a range of days says nothing
// about a cluster of one day. `recent` is the last day. Undefined if earlier intervals have records.
export function firstDay(cells: readonly Cell[], recent: { resourceEntries: readonly Held[]; capacity: readonly Capacity[] }): number | undefined {
  if (cells.slice(0, -1).some((cell) => cell.total > 0 || cell.capacity > 0)) return undefined;
  const starts = [...recent.resourceEntries, ...recent.capacity].map(({ startTime }) => Date.parse(startTime));
  return starts.length > 0 ? Math.min(...starts) : undefined;
}

// One interval per day or month, clipped to the range.
export function fromPeriods(all: readonly UsedPeriod[], range: Range): Cell[] {
  return all.map((one) => {
    const begins = Date.parse(one.periodStart);
    const next = new Date(begins);
    if (one.periodStart.length === 7) next.setUTCMonth(next.getUTCMonth() + 1);
    else next.setUTCDate(next.getUTCDate() + 1);
    const experiments = new Map(Object.entries(one.byExperimentId));
    const rest = one.seconds - [...experiments.values()].reduce((sum, more) => sum + more, 0);
    if (rest > 1) experiments.set(COMMANDS, rest);
    const fromMs = Math.max(begins, range.fromMs);
    return {
      fromMs,
      toMs: Math.max(fromMs, Math.min(next.getTime(), range.toMs)),
      label: one.periodStart,
      total: one.seconds,
      capacity: Object.values(one.capacityByResourcePool ?? {}).reduce((sum, more) => sum + more, 0),
      parts: new Map<By, ReadonlyMap<string, number>>([
        ['pool', new Map(Object.entries(one.byResourcePool))],
        ['user', new Map(Object.entries(one.byUsername))],
        ['label', new Map(Object.entries(one.byExperimentLabel))],
        ['experiment', experiments],
      ]),
    };
  });
}

// Total usage per key, largest first.
export function totals(cells: readonly Cell[], by: By): [string, number][] {
  const sums = new Map<string, number>();
  for (const cell of cells)
    for (const [key, seconds] of cell.parts.get(by) ?? []) sums.set(key, (sums.get(key) ?? 0) + seconds);
  return [...sums].sort(([a, left], [b, right]) => right - left || a.localeCompare(b));
}

// Average number of available slots, since their record begins.
export const available = ({ capacity, knownMs, fromMs, toMs }: Cell): number => average(capacity, knownMs ?? fromMs, toMs);

// Start of the time over which the usage of an interval is averaged: that of the record of slots if the usage fits into
// the available slots since then, so that both are parts of the same time; else that of the interval.
export function usageStart({ total, capacity, knownMs, fromMs }: Cell): number {
  return knownMs !== undefined && total <= capacity * (1 + TOLERANCE) ? knownMs : fromMs;
}

// The first interval of which something is known; -1 without one.
export const firstKnown = (cells: readonly Cell[]): number => cells.findIndex(({ total, capacity }) => total > 0 || capacity > 0);

// Start of the time over which the usage of a range is averaged: that of the first record.
export function averageStart(cells: readonly Cell[], fromMs: number): number {
  const cell = cells[firstKnown(cells)];
  return cell ? Math.max(fromMs, usageStart(cell)) : fromMs;
}

// Whole percents of amounts that add up to `total`. Their sum is 100: the largest fractions are rounded up.
export function shares(amounts: readonly number[], total: number): number[] {
  if (total <= 0) return amounts.map(() => 0);
  const exact = amounts.map((amount) => (100 * amount) / total);
  const out = exact.map((one) => Math.floor(one + 1e-9));
  const missing = Math.round(exact.reduce((sum, one) => sum + one, 0)) - out.reduce((sum, one) => sum + one, 0);
  const order = exact.map((one, at) => [one - (out[at] ?? 0), at] as const).sort(([a], [b]) => b - a);
  for (const [, at] of order.slice(0, missing)) out[at] = (out[at] ?? 0) + 1;
  return out;
}

// The intervals with the start of the record of available slots in the first one that has some.
export function withKnown(cells: readonly Cell[], there: readonly Capacity[]): Cell[] {
  const first = cells.findIndex((cell) => cell.capacity > 0);
  const startMs = Math.min(...there.map(({ startTime }) => Date.parse(startTime)));
  return cells.map((cell, at) => (at === first && startMs > cell.fromMs && startMs < cell.toMs ? { ...cell, knownMs: startMs } : cell));
}

interface Utilization {
  share: number | undefined; // 0..1; undefined if there was usage before the record of available slots
  available: number; // slot-seconds
  since: Cell | undefined; // first interval with recorded slots, if others before it have usage
}

// Used share of the available slots. Undefined without a record of them, or if it is incomplete.
export function utilization(cells: readonly Cell[]): Utilization | undefined {
  const first = cells.findIndex((cell) => cell.capacity > 0);
  if (first < 0) return undefined;
  const known = cells.slice(first);
  const available = known.reduce((sum, cell) => sum + cell.capacity, 0);
  const share = usedSeconds(known) / available;
  if (share > 1 + TOLERANCE) return undefined;
  const since = usedSeconds(cells.slice(0, first)) > 0 ? known[0] : undefined;
  return { share: since ? undefined : Math.min(1, share), available, since };
}

// Slot-seconds with their unit: "40.02 h", "7.2 min", "35 s".
export function slotTime(seconds: number): string {
  const [size, unit] = seconds >= 3600 ? [3600, 'h'] : seconds >= 60 ? [60, 'min'] : [1, 's'];
  const value = seconds / size;
  return `${grouped(Number(value.toFixed(value >= 100 || unit === 's' ? 0 : unit === 'h' ? 2 : 1)))} ${unit}`;
}

const TYPES: Record<By, string> = {
  pool: 'resource_pool',
  user: 'username',
  label: 'experiment_label',
  experiment: 'experiment_id',
};

// The rows of `det resources aggregated`.
export function totalRows(cells: readonly Cell[]): (string | number)[][] {
  const rows: (string | number)[][] = [['aggregation_type', 'aggregation_key', 'date', 'seconds']];
  for (const cell of cells) {
    const date = cell.label || new Date(cell.fromMs).toISOString();
    for (const by of BYS)
      for (const [key, seconds] of [...(cell.parts.get(by) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)))
        rows.push([TYPES[by], key, date, seconds]);
    rows.push(['total', 'total', date, cell.total]);
    if (cell.capacity > 0) rows.push(['capacity', 'total', date, cell.capacity]);
  }
  return rows;
}

// The rows of `det resources raw`.
export const heldRows = (all: readonly Held[]): (string | number)[][] => [
  ['experiment_id', 'kind', 'username', 'labels', 'resource_pool', 'slots', 'start_time', 'end_time', 'seconds'],
  ...all.map((one) => [
    one.experimentId || '',
    one.kind,
    one.username,
    one.labels.join(','),
    one.resourcePool,
    one.slots,
    one.startTime,
    one.endTime ?? '',
    one.seconds,
  ]),
];
