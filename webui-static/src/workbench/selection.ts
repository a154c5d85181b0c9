// One state over table and panels: which runs are drawn, in which colors, and which one is under the pointer.
import { signal } from '@preact/signals';
import type { Run } from './runs';

// Runs drawn without a selection in the address, and at most.
const FIRST_DRAWN = 8;
export const MAX_DRAWN = 200;

// The trial under the pointer, in the table or in a chart.
export const hovered = signal<number | undefined>(undefined);

// The trial of the curves that a run shows; undefined before it is known.
export const trialOf = (run: Run): number | undefined => run.trial?.id || run.experiment.trialIds[0] || undefined;

// Whether a run has reported a metric, as far as the row tells. Queued runs have no curves.
export const hasCurves = ({ trial, experiment, kind }: Run): boolean =>
  kind === 'trial' ? (trial?.totalBatchesProcessed ?? 0) > 0 : experiment.bestTrialSearcherMetric != null && trial?.bestValidation != null;

const isRunning = ({ state }: Run): boolean => state === 'STATE_RUNNING';

// The best experiment of those with one metric; trials are in the order of it.
function bestRun(rows: readonly Run[], smallerIsBetter: boolean): Run | undefined {
  const scored = rows.filter(({ kind, state, experiment }) => kind === 'experiment' && state !== 'STATE_ERROR' && experiment.bestTrialSearcherMetric != null);
  if (new Set(scored.map(({ experiment }) => experiment.searcherMetric)).size !== 1) return undefined;
  const cost = ({ experiment }: Run): number => Number(experiment.bestTrialSearcherMetric) * (smallerIsBetter ? 1 : -1);
  return scored.reduce((best, run) => (cost(run) < cost(best) ? run : best));
}

// The first runs: running ones, then those with curves, and the best one. Experiments by age, newest first, in any order
// of the table; trials in its order, which begins with the best.
function firstRuns(rows: readonly Run[], smallerIsBetter: boolean | undefined): Run[] {
  const aged = rows[0]?.kind === 'experiment' ? [...rows].sort((a, b) => b.id - a.id) : rows;
  const curved = aged.filter((run) => isRunning(run) || hasCurves(run));
  const from = curved.length > 0 ? curved : aged;
  const first = [...from.filter(isRunning), ...from.filter((run) => !isRunning(run))].slice(0, FIRST_DRAWN);
  const best = smallerIsBetter === undefined ? undefined : bestRun(from, smallerIsBetter);
  return !best || first.includes(best) ? first : [...first.slice(0, FIRST_DRAWN - 1), best];
}

// The runs drawn, in the order of the rows: those chosen in the address, or the pinned, the first and the best ones.
export function drawnRuns(rows: readonly Run[], chosen: readonly number[] | undefined, top: readonly number[] = [], smallerIsBetter?: boolean): Run[] {
  if (chosen === undefined) {
    const first = new Set(firstRuns(rows, smallerIsBetter));
    return rows.filter((run) => first.has(run) || top.includes(run.id));
  }
  const wanted = new Set(chosen);
  return rows.filter(({ id }) => wanted.has(id)).slice(0, MAX_DRAWN);
}

// The ids of the drawn runs after one was shown or hidden. Those of the address stay, also if their rows are not loaded.
export function flipDrawn(chosen: readonly number[] | undefined, drawn: readonly Run[], id: number): number[] {
  const ids = new Set(chosen ?? drawn.map((run) => run.id));
  if (!ids.delete(id)) ids.add(id);
  return [...ids];
}

// The chosen ids without a loaded row.
export function outside(chosen: readonly number[] = [], rows: readonly Run[]): number[] {
  const known = new Set(chosen.length > 0 ? rows.map(({ id }) => id) : []);
  return chosen.filter((id) => !known.has(id)).slice(0, MAX_DRAWN);
}

// The selected runs as the rows show them now: the actions offered depend on their states.
export function withRows(chosen: ReadonlyMap<number, Run>, rows: readonly Run[]): ReadonlyMap<number, Run> {
  if (chosen.size === 0) return chosen;
  const changed = rows.filter((run) => chosen.has(run.id) && chosen.get(run.id) !== run);
  return changed.length === 0 ? chosen : new Map([...chosen, ...changed.map((run) => [run.id, run] as const)]);
}
