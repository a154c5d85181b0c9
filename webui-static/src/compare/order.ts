// The order of the columns of a comparison. The first one is the baseline.
import { BEST } from '../workbench/columns';
import { numberOf, type Run } from '../workbench/runs';
import type { Objective } from '../workbench/Workbench';

// The runs from the best searcher metric on; those without one come last, equal ones in the order of the table.
export function ranked(drawn: readonly Run[], { smallerIsBetter }: Objective): Run[] {
  const loss = (run: Run): number => {
    const value = numberOf(run, BEST);
    return value === undefined ? Infinity : smallerIsBetter ? value : -value;
  };
  return [...drawn].sort((a, b) => (loss(a) === loss(b) ? 0 : loss(a) - loss(b)));
}

// As `ranked`, but `before` keeps its order while the same runs are compared: a column that is being read does not move
// because a run reports. Runs that had no value are ranked once they have one.
export function steadilyRanked(before: readonly Run[], drawn: readonly Run[], objective: Objective): Run[] {
  const now = new Map(drawn.map((run) => [run.id, run]));
  const kept = before.flatMap((run) => (numberOf(run, BEST) === undefined ? [] : (now.get(run.id) ?? [])));
  return kept.length === before.length && kept.length === drawn.length ? kept : ranked(drawn, objective);
}

// The chosen baseline, pinned runs, then the others in the order of the table.
export function asChosen(drawn: readonly Run[], top: readonly number[], baseline: number): Run[] {
  const ids = [baseline, ...top, ...drawn.map(({ id }) => id)];
  return [...drawn].sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
}
