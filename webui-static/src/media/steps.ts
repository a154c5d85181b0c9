// Entries of media by trial, name and step. Pure.
import type { Media } from '../calls/media';

export interface Steps {
  steps: readonly number[]; // of all entries, ascending
  names: readonly string[]; // those of most trials first
  images: ReadonlySet<string>; // names with images only
  // The entry of a trial and a name at a step: the newest that is not later.
  at: (trialId: number, name: string, step: number) => Media | undefined;
  // Its entries, ascending by step.
  all: (trialId: number, name: string) => readonly Media[];
  // Entries of trials from the nearest step outwards, at most `limit`.
  around: (trials: ReadonlySet<number>, step: number, limit: number) => Media[];
}

// The position of the last number that is at most `limit`; -1 if all are greater. `numbers` ascend.
export function lastAtMost(count: number, at: (position: number) => number, limit: number): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// Entries ascend by step.
function outwards(entries: readonly Media[], trials: ReadonlySet<number>, step: number, limit: number): Media[] {
  const found: Media[] = [];
  let left = lastAtMost(entries.length, (position) => entries[position]?.step ?? 0, step);
  let right = left + 1;
  while (found.length < limit) {
    const [before, after] = [entries[left], entries[right]];
    if (!before && !after) break;
    const isLeft = before !== undefined && (after === undefined || step - before.step <= after.step - step);
    const next = isLeft ? before : after;
    if (isLeft) left--;
    else right++;
    if (next && trials.has(next.trialId)) found.push(next);
  }
  return found;
}

export function arranged(entries: readonly Media[]): Steps {
  const series = new Map<string, Media[]>();
  const [steps, others] = [new Set<number>(), new Set<string>()];
  const trialsOf = new Map<string, number>();
  const key = (trialId: number, name: string): string => `${trialId} ${name}`;
  for (const one of entries) {
    steps.add(one.step);
    if (one.kind !== 'KIND_IMAGE') others.add(one.name);
    const own = series.get(key(one.trialId, one.name));
    if (own) own.push(one);
    else {
      series.set(key(one.trialId, one.name), [one]);
      trialsOf.set(one.name, (trialsOf.get(one.name) ?? 0) + 1);
    }
  }
  for (const own of series.values()) own.sort((a, b) => a.step - b.step);
  const ascending = [...entries].sort((a, b) => a.step - b.step);
  const names = [...trialsOf.keys()];
  const all = (trialId: number, name: string): readonly Media[] => series.get(key(trialId, name)) ?? [];
  return {
    steps: [...steps].sort((a, b) => a - b),
    names: names.sort((a, b) => (trialsOf.get(b) ?? 0) - (trialsOf.get(a) ?? 0) || (a < b ? -1 : 1)),
    images: new Set(names.filter((name) => !others.has(name))),
    all,
    around: (trials, step, limit) => outwards(ascending, trials, step, limit),
    at: (trialId, name, step) => {
      const own = all(trialId, name);
      return own[lastAtMost(own.length, (position) => own[position]?.step ?? 0, step)];
    },
  };
}
