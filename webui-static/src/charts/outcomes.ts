// Outcomes of trials: the best value so far, and the trials that no other one beats in two metrics. Pure.
import type { Trial } from '../wire';
import { metricOf } from './dimensions';

interface Outcome {
  trial: Trial;
  value: number;
  best: number; // up to and with this trial
}

// The trials with a metric in the order of their numbers.
export function history(trials: readonly Trial[], smallerIsBetter: boolean): Outcome[] {
  let best: number | undefined;
  return [...trials]
    .sort((a, b) => a.id - b.id)
    .flatMap((trial): Outcome[] => {
      const value = metricOf(trial);
      if (value === undefined) return [];
      best = best === undefined ? value : smallerIsBetter ? Math.min(best, value) : Math.max(best, value);
      return [{ trial, value, best }];
    });
}

// A metric of the best validation, and its better direction.
export interface Goal {
  name: string;
  smaller: boolean;
}

// "loss:min,accuracy:max" → goals; undefined unless there are two.
export function readGoals(text: string | undefined): [Goal, Goal] | undefined {
  const found = (text ?? '').split(',').flatMap((one): Goal[] => {
    const match = /^(.+):(min|max)$/.exec(one);
    return match?.[1] ? [{ name: match[1], smaller: match[2] === 'min' }] : [];
  });
  return found.length === 2 && found[0] && found[1] ? [found[0], found[1]] : undefined;
}
export const writeGoals = (goals: readonly Goal[]): string => goals.map(({ name, smaller }) => `${name}:${smaller ? 'min' : 'max'}`).join(',');

export const validationNames = (trials: readonly Trial[]): string[] =>
  [...new Set(trials.flatMap((trial) => Object.keys(trial.bestValidation?.metrics?.avgMetrics ?? {})))].sort();

interface Point {
  trial: Trial;
  x: number;
  y: number;
}

export function points(trials: readonly Trial[], [first, second]: readonly [Goal, Goal]): Point[] {
  return trials.flatMap((trial): Point[] => {
    const all = trial.bestValidation?.metrics?.avgMetrics ?? {};
    const [x, y] = [all[first.name], all[second.name]];
    return typeof x === 'number' && typeof y === 'number' && Number.isFinite(x) && Number.isFinite(y) ? [{ trial, x, y }] : [];
  });
}

// The points that no other point beats in one metric without losing in the other, by x.
export function front(all: readonly Point[], [first, second]: readonly [Goal, Goal]): Point[] {
  const sign = (goal: Goal): number => (goal.smaller ? 1 : -1);
  const order = [...all].sort((a, b) => sign(first) * (a.x - b.x) || sign(second) * (a.y - b.y));
  let best = Infinity;
  const kept = order.filter(({ y }) => {
    const own = sign(second) * y;
    if (own >= best) return false;
    best = own;
    return true;
  });
  return kept.sort((a, b) => a.x - b.x);
}

// The border of what the points of a front beat, as steps: between two points the worse value of each metric.
export function staircase(best: readonly Point[], [first]: readonly [Goal, Goal]): { x: number; y: number }[] {
  return best.flatMap((one, at) => {
    const next = best[at + 1];
    return next ? [one, first.smaller ? { x: next.x, y: one.y } : { x: one.x, y: next.y }] : [one];
  });
}
