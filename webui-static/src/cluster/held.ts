// Slot usage in time intervals, from single allocations. Pure.
import type { Capacity, Held } from '../calls/usage';

export const BYS = ['pool', 'user', 'label', 'experiment'] as const;
export type By = (typeof BYS)[number];

// One time interval. Times are milliseconds, usage is slot-seconds. An allocation with two labels counts
// under both, but once in the total.
export interface Cell {
  fromMs: number;
  toMs: number;
  label: string; // the day or month; "" for shorter intervals
  total: number;
  capacity: number; // available slot-seconds; 0: not recorded
  knownMs?: number; // start of the record of available slots, if it is within the interval
  parts: ReadonlyMap<By, ReadonlyMap<string, number>>;
}

export const COMMANDS = 'commands';

function keysOf(one: Held, by: By): readonly string[] {
  if (by === 'pool') return [one.resourcePool];
  if (by === 'user') return [one.username];
  if (by === 'label') return one.labels;
  return [one.experimentId === 0 ? COMMANDS : String(one.experimentId)];
}

// Splits the range into `count` intervals of equal length.
export function fromHeld(
  all: readonly Held[],
  there: readonly Capacity[],
  fromMs: number,
  toMs: number,
  count: number,
): Cell[] {
  const width = (toMs - fromMs) / count;
  const cells = Array.from({ length: count }, (_, at) => ({
    fromMs: fromMs + at * width,
    toMs: fromMs + (at + 1) * width,
    label: '',
    total: 0,
    capacity: 0,
    parts: new Map(BYS.map((by) => [by, new Map<string, number>()] as const)),
  }));
  // Distributes the slot-seconds of one entry over the intervals it overlaps.
  const spread = (one: Held | Capacity, add: (cell: (typeof cells)[number], seconds: number) => void): void => {
    const begun = Math.max(fromMs, Date.parse(one.startTime));
    const ended = Math.min(toMs, one.endTime ? Date.parse(one.endTime) : toMs);
    for (let at = Math.floor((begun - fromMs) / width); at < count; at++) {
      const cell = cells[at];
      if (!cell || cell.fromMs >= ended) break;
      const seconds = (one.slots * (Math.min(cell.toMs, ended) - Math.max(cell.fromMs, begun))) / 1000;
      if (seconds > 0) add(cell, seconds);
    }
  };
  for (const one of all)
    spread(one, (cell, seconds) => {
      cell.total += seconds;
      for (const [by, sums] of cell.parts)
        for (const key of keysOf(one, by)) sums.set(key, (sums.get(key) ?? 0) + seconds);
    });
  for (const one of there) spread(one, (cell, seconds) => (cell.capacity += seconds));
  return cells;
}

// Slot-seconds in use.
export const usedSeconds = (cells: readonly Cell[]): number => cells.reduce((sum, cell) => sum + cell.total, 0);

// Average number of slots in use.
export const average = (seconds: number, fromMs: number, toMs: number): number =>
  toMs > fromMs ? (seconds * 1000) / (toMs - fromMs) : 0;

// Used share of the slots of the last hour, in words, from intervals of a minute.
export function lastHour(cells: readonly Cell[]): string {
  const first = cells.findIndex((cell) => cell.capacity > 0);
  if (first < 0) return 'No slots in the last hour';
  const known = cells.slice(first);
  const share = usedSeconds(known) / known.reduce((sum, cell) => sum + cell.capacity, 0);
  return `${Math.round(Math.min(1, share) * 100)}% in use over the last ${first === 0 ? 'hour' : known.length === 1 ? 'minute' : `${known.length} min`}`;
}
