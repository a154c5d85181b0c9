// How far the trials of a running search have come: their number by state, and the length to which each trains. Pure.
import { counted, grouped, isEnded, progressOf, restOf } from '../format';
import type { Experiment, Trial } from '../wire';
import { at, fullLength } from './runs';

// The length of training of each trial, in batches.
interface Target {
  batches: number;
  isEstimated: boolean; // from batches and progress
}

// Progress below this part tells no length. Lengths that differ by a greater part are not those of all trials.
const LEAST_PROGRESS = 0.01;
const SAME = 0.1;
const DIGITS = 2;
// Lengths from this one on are thousands.
const LONG = 10_000;

const isNear = (one: number, other: number): boolean => Math.abs(one - other) <= SAME * other;

// The length to which trials train: as configured, unless their progress tells another one, which programs decide;
// undefined if neither tells one of all.
export function targetOf(experiment: Partial<Experiment>, trials: readonly Trial[]): Target | undefined {
  const full = fullLength(experiment);
  const told = trials
    .filter(({ progress, totalBatchesProcessed }) => progress >= LEAST_PROGRESS && totalBatchesProcessed > 0)
    .map(({ progress, totalBatchesProcessed }) => totalBatchesProcessed / progress)
    .sort((a, b) => a - b);
  const middle = told[Math.floor(told.length / 2)];
  if (full !== undefined && (middle === undefined || isNear(middle, full))) return { batches: full, isEstimated: false };
  return middle !== undefined && told.every((one) => isNear(one, middle)) ? { batches: Number(middle.toPrecision(DIGITS)), isEstimated: true } : undefined;
}

// The seconds left of an experiment: its running trials share the rest of the work, in seconds with slots, not those in the
// queue. Undefined while no trial runs or it is too early for an estimate.
export function timeLeft(experiment: Pick<Experiment, 'state' | 'progress'>, trials: readonly Trial[]): number | undefined {
  const rest = restOf(progressOf(experiment));
  const running = trials.filter(({ state }) => state === 'STATE_RUNNING').length;
  if (rest === undefined || running === 0 || experiment.state !== 'STATE_RUNNING') return undefined;
  return (trials.reduce((sum, { wallClockTime }) => sum + wallClockTime, 0) * rest) / running;
}

const short = (batches: number): string => (batches >= LONG && batches % 100 === 0 ? `${grouped(batches / 1000)}k` : grouped(batches));

// "Batches of 20k", or "Batches of ~20k".
export const targetTitle = (title: string, { batches, isEstimated }: Target): string => `${title} of ${isEstimated ? '~' : ''}${short(batches)}`;

// "6 of 16 trials ended, 4 running, 6 to come"; of a run without a search its batches, "12,600 of 20,000 batches". After
// the end the number of trials.
export function trialsText(experiment: Experiment, trials: readonly Trial[]): string {
  const most = Number(at(experiment.config, ['searcher', 'max_trials']) ?? 0);
  const [only] = trials;
  if (isEnded(experiment.state)) return counted(trials.length, 'trial');
  if (only && trials.length === 1 && most <= 1) {
    const target = targetOf(experiment, trials);
    return target && !isEnded(only.state) ? `${grouped(only.totalBatchesProcessed)} of ${target.isEstimated ? '~' : ''}${grouped(target.batches)} batches` : '1 trial';
  }
  const all = Math.max(most, trials.length);
  const count = (has: (state: string) => boolean): number => trials.filter(({ state }) => has(state)).length;
  const [ended, running, paused] = [count(isEnded), count((state) => state === 'STATE_RUNNING'), count((state) => state === 'STATE_PAUSED')];
  const others: [number, string][] = [[running, 'running'], [paused, 'paused'], [trials.length - ended - running - paused, 'waiting'], [all - trials.length, 'to come']];
  return [`${grouped(ended)} of ${counted(all, 'trial')} ended`, ...others.filter(([one]) => one > 0).map(([one, word]) => `${grouped(one)} ${word}`)].join(', ');
}
