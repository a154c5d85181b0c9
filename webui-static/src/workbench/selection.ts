// One state over table and panels: which runs are drawn, in which colors, and which one is under the pointer.
import { signal } from '@preact/signals';
import type { Run } from './runs';

// Runs drawn without a selection in the address, and at most.
export const FIRST_DRAWN = 8;
export const MAX_DRAWN = 200;

// The trial under the pointer, in the table or in a chart.
export const hovered = signal<number | undefined>(undefined);

// The trial of the curves that a run shows; undefined before it is known.
export const trialOf = (run: Run): number | undefined => run.trial?.id || run.experiment.trialIds[0] || undefined;

// Whether a run has reported a metric. Queued runs have no curves.
const hasCurves = ({ trial, experiment, kind }: Run): boolean =>
  kind === 'trial' ? (trial?.totalBatchesProcessed ?? 0) > 0 : experiment.bestTrialSearcherMetric != null;

// The runs drawn, in the order of the rows: those chosen in the address, or the pinned and the first ones with curves.
export function drawnRuns(rows: readonly Run[], chosen: readonly number[] | undefined, top: readonly number[] = []): Run[] {
  if (chosen === undefined) {
    const curved = rows.filter(hasCurves);
    const first = (curved.length > 0 ? curved : rows).slice(0, FIRST_DRAWN);
    return rows.filter((run) => first.includes(run) || top.includes(run.id));
  }
  const wanted = new Set(chosen);
  return rows.filter(({ id }) => wanted.has(id)).slice(0, MAX_DRAWN);
}

// Colors as numbers: a drawn run keeps its number, a new one takes the smallest that is free.
export function numbered(before: ReadonlyMap<number, number>, ids: readonly number[]): Map<number, number> {
  const kept = new Map(ids.flatMap((id) => (before.has(id) ? [[id, before.get(id) as number] as const] : [])));
  const used = new Set(kept.values());
  let free = 0;
  for (const id of ids) {
    if (kept.has(id)) continue;
    while (used.has(free)) free++;
    used.add(free);
    kept.set(id, free);
  }
  return kept;
}

// The chosen runs as the rows show them now: the actions offered depend on their states.
export function withRows(chosen: ReadonlyMap<number, Run>, rows: readonly Run[]): ReadonlyMap<number, Run> {
  if (chosen.size === 0) return chosen;
  const changed = rows.filter((run) => chosen.has(run.id) && chosen.get(run.id) !== run);
  return changed.length === 0 ? chosen : new Map([...chosen, ...changed.map((run) => [run.id, run] as const)]);
}
