// Data for the view of a search: its rungs from the lengths at which trials ended, stages of trials, reports over time. Pure.
import type { Brackets } from '../calls/brackets';
import { LEAST_GAIN, TIME_STEPS } from '../charts/series';
import { counted, grouped, isEnded } from '../format';
import type { DataPoint, Trial } from '../wire';

interface Rung {
  batches: number;
  reached: number;
}

// The lengths at which trials ended, shortest first. A search without early stopping has one.
export function rungs(trials: readonly Trial[]): Rung[] {
  const levels = [
    ...new Set(
      trials
        .filter((trial) => isEnded(trial.state) && trial.totalBatchesProcessed > 0)
        .map((trial) => trial.totalBatchesProcessed),
    ),
  ].sort((a, b) => a - b);
  return levels.map((batches) => ({
    batches,
    reached: trials.filter((one) => one.totalBatchesProcessed >= batches).length,
  }));
}

// One chart of a search: a bracket, or the whole search when it has none.
export interface Lane {
  title: string; // "" for a search without brackets
  trials: Trial[];
  // `wentOn` is undefined for the last rung.
  rungs: { length: number; came: number; wentOn: number | undefined }[];
  maxTrials: number | undefined;
}

export function lanes(all: Brackets, trials: readonly Trial[]): Lane[] {
  if (all.brackets.length === 0) {
    const steps = rungs(trials);
    return [
      {
        title: '',
        trials: [...trials],
        maxTrials: undefined,
        rungs: steps.map((one, at) => ({ length: one.batches, came: one.reached, wentOn: steps[at + 1]?.reached })),
      },
    ];
  }
  const byId = new Map(trials.map((trial) => [trial.id, trial]));
  return all.brackets.map((one, at) => ({
    title: all.brackets.length === 1 ? 'Schedule' : `Schedule ${at + 1} of ${all.brackets.length}`,
    trials: one.trialIds.map((id) => byId.get(id)).filter((trial) => trial !== undefined),
    maxTrials: one.maxTrials,
    rungs: one.rungs.map((rung, level) => ({
      length: rung.length,
      came: rung.trials,
      wentOn: one.rungs[level + 1]?.trials,
    })),
  }));
}

// The stage (rung) of a trial: the one that it trains for, or at which it was stopped.
export interface Stage {
  at: number; // from 1
  of: number; // stages of its bracket
  length: number; // of training, in units of the search
  unit: string;
  isStopped: boolean;
  schedule: number; // its bracket, from 1
  schedules: number; // brackets of the search
}

// The stages of the trials of a search by halving, by trial. A trial that its search completed has ended at a stage.
export function trialStages({ brackets, timeMetric }: Brackets, trials: readonly Trial[]): Map<number, Stage> {
  const unit = timeMetric || 'batches';
  const lengthOf = ({ totalBatchesProcessed, latestValidation }: Trial): number =>
    unit === 'batches' ? totalBatchesProcessed : Number(latestValidation?.metrics?.avgMetrics?.[unit] ?? 0);
  const byId = new Map(trials.map((trial) => [trial.id, trial]));
  return new Map(
    brackets.flatMap(({ rungs: levels, trialIds }, bracket) =>
      trialIds.flatMap((id): [number, Stage][] => {
        const trial = byId.get(id);
        if (!trial || levels.length === 0) return [];
        const passed = levels.filter(({ length }) => length <= lengthOf(trial)).length;
        const isCompleted = trial.state === 'STATE_COMPLETED';
        const at = isCompleted ? Math.max(1, passed) : Math.min(levels.length, passed + 1);
        const isStopped = isCompleted && at < levels.length;
        return [[id, { at, of: levels.length, length: levels[at - 1]?.length ?? 0, unit, isStopped, schedule: bracket + 1, schedules: brackets.length }]];
      }),
    ),
  );
}

// "Stopped at stage 1 of 3, 667 batches".
export const stageText = ({ at, of, length, unit, isStopped }: Stage): string => `${isStopped ? 'Stopped at stage' : 'Stage'} ${at} of ${of}, ${grouped(length)} ${unit}`;

// A value of a trial at a stage, with the time of its report.
interface Entry {
  id: number;
  value: number;
  seconds: number;
  isStopped: boolean;
}

export interface Early {
  stage: number; // after which the trial went on, from 1
  id: number; // of the trial
  before: number[]; // better trials that were stopped there, which reported later
}

// The trials that went on after a stage although better ones were stopped there, which reported later: halving that does not
// wait compares a trial with those before it. `reportsOf`: the reports of a trial, ascending by length.
export function wentOnEarly({ trials, rungs: levels }: Lane, reportsOf: (trial: Trial) => readonly Report[], smallerIsBetter: boolean): Early[] {
  const isBetter = (a: Entry, b: Entry): boolean => (smallerIsBetter ? a.value < b.value : a.value > b.value);
  return levels.slice(0, -1).flatMap(({ length }, level): Early[] => {
    const entries = trials.flatMap((trial): Entry[] => {
      const [first, next] = reportsOf(trial).filter((report) => report.value !== undefined && report.length >= length);
      // A trial may train a little past a stage before it stops.
      const isDone = trial.state === 'STATE_COMPLETED';
      const isStopped = next === undefined || (isDone && !reportsOf(trial).some((report) => report.length >= (levels[level + 1]?.length ?? 0)));
      if (first?.value === undefined || (isStopped && !isDone)) return [];
      return [{ id: trial.id, value: first.value, seconds: first.seconds, isStopped }];
    });
    const stopped = entries.filter(({ isStopped }) => isStopped).sort((a, b) => a.id - b.id);
    return entries.flatMap((one): Early[] => {
      const before = one.isStopped ? [] : stopped.filter((other) => isBetter(other, one) && other.seconds > one.seconds);
      return before.length > 0 ? [{ stage: level + 1, id: one.id, before: before.map(({ id }) => id) }] : [];
    });
  });
}

// More trials are counted.
const MAX_EARLY = 3;
const sorted = (ids: readonly number[]): number[] => [...new Set(ids)].sort((a, b) => a - b);
const joinedBy = (word: string, ids: readonly number[]): string => ids.join(', ').replace(/, ([^,]+)$/, ` ${word} $1`);

// The stages with the trials that were stopped there, and the worse ones that went on.
const byStage = (early: readonly Early[]): { stage: number; better: number[]; others: number[] }[] =>
  sorted(early.map(({ stage }) => stage)).map((stage) => {
    const own = early.filter((one) => one.stage === stage);
    return { stage, better: sorted(own.flatMap(({ before }) => before)), others: sorted(own.map(({ id }) => id)) };
  });

// "Stage 1: trials 40 and 41 were stopped although they were better than 31 or 32, which reported earlier.".
export const earlyText = (early: readonly Early[]): string =>
  byStage(early).map(({ stage, better, others }) => {
    const named = better.length > MAX_EARLY ? counted(better.length, 'trial') : `trial${better.length > 1 ? 's' : ''} ${joinedBy('and', better)}`;
    const than = others.length > MAX_EARLY ? `${others.length} others` : joinedBy('or', others);
    return `Stage ${stage}: ${named} ${better.length > 1 ? 'were stopped although they were' : 'was stopped although it was'} better than ${than}, which reported earlier.`;
  }).join(' ');

// The trials that the text has by their ids.
export const citedIn = (early: readonly Early[]): number[] =>
  sorted(byStage(early).flatMap(({ better, others }) => [better, others].filter((ids) => ids.length <= MAX_EARLY).flat()));

// The lane with its rungs at the lengths at which its trials were compared: those of the first validations at or after
// the configured ones. `validated`: the lengths of the validations of each trial, ascending.
export function atValidations(lane: Lane, validated: readonly (readonly number[])[]): Lane {
  const decided = (length: number): number => Math.min(...validated.map((all) => all.find((one) => one >= length) ?? Infinity));
  return { ...lane, rungs: lane.rungs.map((rung) => ({ ...rung, length: Number.isFinite(decided(rung.length)) ? decided(rung.length) : rung.length })) };
}

// The length that a trial had reached at a validation, in the search's unit.
export function reached(point: DataPoint, timeMetric: string): number | undefined {
  if (timeMetric === 'batches' || timeMetric === '') return point.batches;
  const value = point.values?.[timeMetric] ?? (/^epochs?$/.test(timeMetric) ? point.epoch : undefined);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

// The `count` trials that trained longest, in the original order.
export function farthest(trials: readonly Trial[], count: number): Trial[] {
  if (trials.length <= count) return [...trials];
  const kept = new Set(
    [...trials]
      .sort((a, b) => b.totalBatchesProcessed - a.totalBatchesProcessed || a.id - b.id)
      .slice(0, count)
      .map((trial) => trial.id),
  );
  return trials.filter((trial) => kept.has(trial.id));
}

export interface Report {
  length: number; // of training, in units of the search
  seconds: number; // since the start of the experiment
  value?: number | undefined; // of the metric
}

// A value of the metric at a time.
export type Value = Pick<Report, 'seconds' | 'value'>;

// The values that are better than all before them, by time.
export function bestSoFar(values: readonly Value[], smallerIsBetter: boolean): Value[] {
  let best = smallerIsBetter ? Infinity : -Infinity;
  return [...values]
    .filter(({ seconds }) => Number.isFinite(seconds))
    .sort((a, b) => a.seconds - b.seconds)
    .filter(({ value }) => {
      const isBetter = value !== undefined && (smallerIsBetter ? value < best : value > best);
      if (isBetter) best = value;
      return isBetter;
    });
}

// The range of the metric; if `crops`, that of the last values of the trials and of the best one, where this makes them easier to
// tell apart: the first values are then out of sight. Undefined without values.
export function inSight(lines: readonly (readonly Report[])[], bests: readonly Value[], crops: boolean): { min: number; max: number; isCropped: boolean } | undefined {
  const known = lines.map((reports) => reports.flatMap(({ value }) => value ?? []));
  const all = known.flat();
  if (all.length === 0) return undefined;
  const range = (values: readonly number[]) => ({ min: Math.min(...values), max: Math.max(...values) });
  const [whole, ends] = [range(all), range([...known, bests.flatMap(({ value }) => value ?? [])].flatMap((values) => values.slice(-1)))];
  const isCropped = crops && ends.max > ends.min && ends.max - ends.min <= LEAST_GAIN * (whole.max - whole.min);
  return { ...(isCropped ? ends : whole), isCropped };
}

// The reports of a trial after the point at which its training began: back from the first reports at their pace, but not
// before the trial was created. It may have waited for slots until then.
export function fromBegin(reports: readonly Report[], created: number): Report[] {
  const [first, second] = reports;
  if (!first) return [{ length: 0, seconds: created }];
  const pace = second && second.length > first.length ? (second.seconds - first.seconds) / (second.length - first.length) : Infinity;
  const begun = Math.min(first.seconds, Math.max(created, first.seconds - pace * first.length));
  return [{ length: 0, seconds: Number.isFinite(begun) ? begun : created }, ...reports];
}

// With a greater ratio of the longest to the lowest rung, a linear scale would draw the lower rungs over each other.
const MAX_LINEAR = 8;

export interface LengthScale {
  longest: number;
  isLog: boolean;
  part: (length: number) => number; // 0..1
}

// The scale of an axis of training lengths. On a logarithmic one, what is below half of the lowest rung is at 0.
export function lengthScale(levels: readonly number[], lengths: readonly number[]): LengthScale {
  const longest = Math.max(1, ...levels, ...lengths);
  const lowest = Math.min(longest, ...levels.filter((level) => level > 0));
  if (longest <= MAX_LINEAR * lowest) return { longest, isLog: false, part: (length) => length / longest };
  const floor = lowest / 2;
  return { longest, isLog: true, part: (length) => Math.log(Math.max(length, floor) / floor) / Math.log(longest / floor) };
}

const DAY = 86400;

// Round times from 0 to `latest` seconds, at most `count` after 0.
export function timeTicks(latest: number, count: number): number[] {
  const least = latest / count;
  const step = TIME_STEPS.find((one) => one <= DAY && one >= least) ?? DAY * Math.ceil(least / DAY);
  return Array.from({ length: Math.floor(latest / step) + 1 }, (_, at) => at * step);
}
