// Breaks down the time of a trial (waiting, starting, training, repeated) from its runs and
// reports, and computes its speed. Pure.
import { apportion, duration, grouped, metric, restOf } from '../format';
import type { Allocation, MetricSeries } from '../wire';

// Durations in seconds.
export interface Spent {
  waiting: number; // without slots: before the first run and between runs
  starting: number; // from getting slots to the first report: build, data, first batches
  training: number; // from the first report to the end of the run
  repeated: number; // runs without a report that is left: a later run repeated their batches
}

export interface Report {
  ms: number; // time since 1970
  batches: number;
}

// The reports of a series, in batch order.
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
  const spent = { waiting: 0, starting: 0, training: 0, repeated: 0 };
  let free = beginMs; // start of the current time without slots
  const begun = attempts.filter((one) => one.startTime).sort((a, b) => a.run - b.run);
  for (const [at, one] of begun.entries()) {
    const from = Date.parse(one.startTime ?? '');
    const to = one.endTime ? Date.parse(one.endTime) : nowMs;
    const own = reports.filter(({ ms }) => ms >= from && ms <= to);
    const first = Math.min(to, ...own.map(({ ms }) => ms));
    spent.waiting += Math.max(0, from - free) / 1000;
    if (own.length === 0 && at < begun.length - 1) spent.repeated += Math.max(0, to - from) / 1000;
    else spent.starting += Math.max(0, first - from) / 1000;
    spent.training += Math.max(0, to - first) / 1000;
    free = to;
  }
  return spent;
}

export interface Part {
  key: keyof Spent;
  share: number; // 0..1
  time: string;
  percent: string;
}

const KEYS: readonly (keyof Spent)[] = ['waiting', 'starting', 'training', 'repeated'];

// The parts of a time that took any, as texts: times add up to the whole time and percents to 100. A part below the unit of
// the whole time is told by itself.
export function partsOf(spent: Spent): Part[] {
  const keys = KEYS.filter((key) => spent[key] > 0);
  const seconds = keys.map((key) => spent[key]);
  const all = seconds.reduce((sum, one) => sum + one, 0);
  const unit = all < 3600 ? 1 : all < 86400 ? 60 : 3600;
  const units = apportion(seconds, Math.floor(all / unit));
  const percents = apportion(seconds, 100);
  return keys.map((key, at) => ({
    key,
    share: spent[key] / all,
    time: spent[key] < 1 ? '<1s' : duration(spent[key] < unit ? spent[key] : (units[at] ?? 0) * unit),
    percent: spent[key] / all < 0.01 ? '<1%' : `${percents[at]}%`,
  }));
}

// Batches per second between reports, merged into about `most` intervals of equal time. Intervals that go
// back to a checkpoint have no value.
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

const median = (values: readonly number[]): number | undefined => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

// Newest reports that tell the present speed and utilization of a trial.
const NEWEST = 60;

// The present speed of a trial in batches per second: the median between its newest reports; undefined without two.
export const recentSpeed = (reports: readonly Report[]): number | undefined => median(speeds(reports.slice(-NEWEST), NEWEST).map((one) => one.perSecond));

// Fewest points of a series that tell a pace.
const MIN_POINTS = 4;

// The seconds left of a trial at a progress of 0..1, by the median pace of the newest half of a series; pauses do not
// count. Undefined while it is too early for an estimate.
export function leftByPace(progress: number | undefined, { batches, milliseconds }: MetricSeries): number | undefined {
  const [rest, from] = [restOf(progress), batches.length / 2];
  const paces = batches.flatMap((more, at) => (at >= from && more > 0 ? [(milliseconds[at] ?? 0) / more] : []));
  const pace = median(paces);
  if (rest === undefined || pace === undefined || batches.length < MIN_POINTS) return undefined;
  return (batches.reduce((sum, one) => sum + one, 0) * rest * pace) / 1000;
}

function paceOf(all: readonly MetricSeries[]): number | undefined {
  const longest = all.filter(({ group }) => group === 'training').sort((a, b) => b.batches.length - a.batches.length)[0];
  return longest && recentSpeed(reportsOf(longest));
}

// "46.2 batches/s now · GPU 82%": medians of the newest reports, of several trials the sum of their speeds, without the
// utilization of a CPU beside a GPU; '' without reports.
export function paceText(all: readonly MetricSeries[]): string {
  const paces = [...new Set(all.map(({ trialId }) => trialId))].flatMap((id) => paceOf(all.filter(({ trialId }) => trialId === id)) ?? []);
  const perSecond = paces.length > 0 ? paces.reduce((sum, one) => sum + one, 0) : undefined;
  const use = (name: RegExp): number | undefined => {
    const newest = all.filter((one) => name.test(one.name)).flatMap(({ values }) => values.slice(-NEWEST));
    return median(newest.filter((value): value is number => typeof value === 'number'));
  };
  const [gpu, cpu] = [use(/^gpu_util\b/), use(/^cpu_util_simple$/)];
  const used = gpu === undefined ? cpu : gpu;
  return [
    perSecond === undefined ? '' : `${perSecond < 1000 ? metric(Number(perSecond.toPrecision(3))) : grouped(Math.round(perSecond))} batches/s now`,
    used === undefined ? '' : `${gpu === undefined ? 'CPU' : 'GPU'} ${Math.round(used)}%`,
  ].filter(Boolean).join(' · ');
}

// System metrics by their plain names.
const TITLES: Readonly<Record<string, string>> = {
  cpu_util_simple: 'CPU use',
  memory_free: 'Free memory',
  disk_iops: 'Disk operations per second',
  disk_throughput_read: 'Read from disk',
  disk_throughput_write: 'Written to disk',
  disk_util: 'Disk space used',
  net_throughput_sent: 'Network sent',
  net_throughput_recv: 'Network received',
};

const GPU_TITLES: Readonly<Record<string, string>> = { util: 'use', free_memory: 'free memory', power: 'power', temperature: 'temperature' };

// "GPU 0 use" of "gpu_util.0"; undefined for unknown names.
export function systemTitle(name: string): string | undefined {
  const [, kind = '', gpu] = /^gpu_([a-z_]+)\.(\d+)$/.exec(name) ?? [];
  const title = GPU_TITLES[kind];
  return title === undefined ? TITLES[name] : `GPU ${gpu} ${title}`;
}

// System metrics in the order of charts: use first, then amounts.
const ORDER = [/^gpu_util\b/, /^cpu_util/, /^gpu_free_memory\b/, /^memory_/, /^gpu_power\b/, /^gpu_temperature\b/, /^net_/, /^disk_/];
export function systemRank(name: string): number {
  const at = ORDER.findIndex((pattern) => pattern.test(name));
  return at < 0 ? ORDER.length : at;
}

// Whether the axis of a system metric begins at zero: its values are amounts of memory, data or power.
export const isAmount = (name: string): boolean => /memory|_throughput_|_power\b/.test(name);

// Whether the values of a system metric are percentages.
export const isPercentage = (name: string): boolean => /_util\b|_util_/.test(name);

const BYTES = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];

// The unit of a system metric for values up to `largest`: its size, and its name after a number. Undefined without one.
export function unitOf(name: string, largest: number): [size: number, unit: string] | undefined {
  const isRate = /_throughput_/.test(name);
  if (isRate || /^(memory_free|gpu_free_memory\b.*)$/.test(name)) {
    const power = Math.min(BYTES.length - 1, Math.floor(Math.log10(Math.max(1, largest)) / 3));
    return [1000 ** power, ` ${BYTES[power]}${isRate ? '/s' : ''}`];
  }
  const unit = /^gpu_power\b/.test(name) ? ' W' : /^gpu_temperature\b/.test(name) ? ' °C' : isPercentage(name) ? '%' : '';
  return unit === '' ? undefined : [1, unit];
}

// A system metric with its unit: "2.09 GB", "500 MB"; undefined for names without one.
export function unitText(name: string, value: number): string | undefined {
  const found = unitOf(name, value);
  return found && `${Number((value / found[0]).toPrecision(3))}${found[1]}`;
}
