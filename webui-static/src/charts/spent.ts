// Owns where a trial's time went, as far as its attempts and reports tell: waiting, starting, training; and how fast it
// trained. Pure.
import { bytes } from '../format';
import type { Allocation, MetricSeries } from '../wire';

// Seconds.
export interface Spent {
  waiting: number; // without a slot: before the first attempt and between them
  starting: number; // from a slot until the first report of that attempt: building, loading, the first batches
  training: number; // from there to the attempt's end: batches, validations, checkpoints
}

export interface Report {
  ms: number; // when, since 1970
  batches: number;
}

// The reports behind a series, in order of batches.
export function reportsOf(one: MetricSeries): Report[] {
  let ms = Date.parse(one.firstTime ?? '');
  let batches = 0;
  return one.batches.map((more, at) => {
    ms += one.milliseconds[at] ?? 0;
    batches += more;
    return { ms, batches };
  });
}

export function spentOf(beginMs: number, attempts: readonly Allocation[], reports: readonly Report[], nowMs: number): Spent {
  const spent = { waiting: 0, starting: 0, training: 0 };
  let free = beginMs; // since when it had no slot
  const begun = attempts.filter((one) => one.startTime).sort((a, b) => a.run - b.run);
  for (const one of begun) {
    const from = Date.parse(one.startTime ?? '');
    const to = one.endTime ? Date.parse(one.endTime) : nowMs;
    const first = Math.min(to, ...reports.filter(({ ms }) => ms >= from && ms <= to).map(({ ms }) => ms));
    spent.waiting += Math.max(0, from - free) / 1000;
    spent.starting += Math.max(0, first - from) / 1000;
    spent.training += Math.max(0, to - first) / 1000;
    free = to;
  }
  return spent;
}

// Batches per second between reports, joined to about `most` stretches of equal time; a stretch that leads back (an attempt
// began again at its checkpoint) has none.
export function speeds(reports: readonly Report[], most: number): { batches: number; ms: number; perSecond: number }[] {
  const inTime = [...reports].sort((a, b) => a.ms - b.ms);
  const [first, last] = [inTime[0], inTime[inTime.length - 1]];
  if (!first || !last) return [];
  const width = (last.ms - first.ms) / most;
  const out: { batches: number; ms: number; perSecond: number }[] = [];
  let from = first;
  for (const to of inTime) {
    if (to.batches < from.batches) from = to;
    if (to.ms - from.ms < Math.max(1, width) || to.batches === from.batches) continue;
    const perSecond = ((to.batches - from.batches) * 1000) / (to.ms - from.ms);
    out.push({ batches: to.batches, ms: to.ms, perSecond });
    from = to;
  }
  return out;
}

// How a measurement of the machine reads.
export function unitText(name: string, value: number): string | undefined {
  if (/_throughput_/.test(name)) return `${bytes(value, 2)}/s`;
  if (/^(memory_free|gpu_free_memory\b.*)$/.test(name)) return bytes(value, 2);
  if (/_util\b|_util_/.test(name)) return `${Number(value.toPrecision(3))}%`;
  return undefined;
}
