// Time per batch by phase: merges the metric group "timing" into a few bars. Pure.
import type { MetricSeries } from '../wire';

// Phases in the order of a batch. Unknown phases follow.
const ORDER = ['data', 'forward', 'backward', 'exchange', 'optimizer', 'validation', 'checkpoint', 'report', 'other'];

// The mean over batches in (from, to].
export interface Bar {
  from: number;
  to: number;
  seconds: Map<string, number>; // seconds per batch, by phase
}

export interface Phases {
  names: string[]; // phases that took any time
  bars: Bar[]; // at most the requested number, in order
  shares: Map<string, number>; // fraction of the total time, by phase
  perBatch: number; // mean seconds per batch
}

// The part of a batch's time that counts as measured: a smaller rest is noise.
const MEASURED = 0.95;

// Seconds per batch within (from, to], by the measured speeds; those of all batches where the range has none. The lower
// median: an interval that contains a pause is slow.
function paceOf(speeds: readonly Speed[], from: number, to: number): number {
  const own = speeds.filter(({ batches }) => batches > from && batches <= to);
  const all = (own.length > 0 ? own : speeds).map(({ perSecond }) => 1 / perSecond).sort((a, b) => a - b);
  return all[Math.floor((all.length - 1) / 2)] ?? 0;
}

interface Speed {
  batches: number; // end of the interval
  perSecond: number;
}

// A report covers the batches since the previous one. The first report is assumed
// to cover as many as the second. Time of a batch that no phase covers is "other".
export function phasesOf(timing: readonly MetricSeries[], most: number, speeds: readonly Speed[] = []): Phases {
  const at = new Map<number, Map<string, number>>();
  for (const one of timing) {
    let batches = 0;
    one.batches.forEach((more, i) => {
      batches += more;
      const value = one.values[i];
      if (typeof value !== 'number' || !Number.isFinite(value)) return;
      const here = at.get(batches) ?? new Map<string, number>();
      at.set(batches, here.set(one.name, value));
    });
  }
  const ends = [...at.keys()].sort((a, b) => a - b);
  const [first = 0, second = 2 * first] = ends;
  const begin = Math.max(0, 2 * first - second);
  const joined = Math.max(1, Math.ceil(ends.length / most));
  const bars: Bar[] = [];
  const totals = new Map<string, number>();
  let from = begin;
  for (let i = 0; i < ends.length; i += joined) {
    const bar: Bar = { from, to: from, seconds: new Map() };
    for (const end of ends.slice(i, i + joined)) {
      for (const [name, seconds] of at.get(end) ?? [])
        bar.seconds.set(name, (bar.seconds.get(name) ?? 0) + seconds * (end - bar.to));
      bar.to = end;
    }
    const batches = Math.max(1, bar.to - bar.from);
    const measured = [...bar.seconds.values()].reduce((sum, one) => sum + one, 0);
    const pace = paceOf(speeds, bar.from, bar.to) * batches;
    if (measured < MEASURED * pace) bar.seconds.set('other', (bar.seconds.get('other') ?? 0) + pace - measured);
    for (const [name, seconds] of bar.seconds) {
      totals.set(name, (totals.get(name) ?? 0) + seconds);
      bar.seconds.set(name, seconds / batches);
    }
    bars.push(bar);
    from = bar.to;
  }
  const all = [...totals.values()].reduce((sum, one) => sum + one, 0);
  const rank = (name: string): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  const names = [...totals.keys()].filter((name) => (totals.get(name) ?? 0) > 0);
  return {
    names: names.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b)),
    bars,
    shares: new Map([...totals].map(([name, seconds]) => [name, all > 0 ? seconds / all : 0])),
    perBatch: from > begin ? all / (from - begin) : 0,
  };
}
