// Subjects of a comparison: trials, or experiments represented by their best trial; and their differences.
// Pure except for loading.
import * as api from '../api';
import { flatten } from '../charts/search';
import { metric, sorted } from '../format';
import type { Experiment, JsonObject, JsonValue, Trial } from '../wire';

export const MAX_COMPARED = 20;

export interface Subject {
  name: string; // "experiment 7", "trial 12"
  path: 'experiment' | 'trial';
  experiment: Experiment;
  trial: Trial | undefined; // provides the curves
  color?: string | undefined; // of its curves
}

// "3,1,3,x" → [3, 1]; at most MAX_COMPARED.
export const readIds = (text: string | undefined): number[] =>
  [...new Set((text ?? '').split(',').filter((one) => /^[1-9]\d{0,9}$/.test(one)))].map(Number).slice(0, MAX_COMPARED);

async function byExperiment(id: number, signal: AbortSignal): Promise<Subject> {
  const experiment = await api.experiment(id, signal);
  const trialId = experiment.bestTrialId ?? experiment.trialIds[0];
  const trial = trialId ? await api.trial(trialId, signal) : undefined;
  return { name: `experiment ${id}`, path: 'experiment', experiment, trial };
}

async function byTrial(id: number, signal: AbortSignal): Promise<Subject> {
  const trial = await api.trial(id, signal);
  const experiment = await api.experiment(trial.experimentId, signal);
  return { name: `trial ${id}`, path: 'trial', experiment, trial };
}

export const loadSubjects = (
  experiments: readonly number[],
  trials: readonly number[],
  signal: AbortSignal,
): Promise<Subject[]> =>
  Promise.all([...experiments.map((id) => byExperiment(id, signal)), ...trials.map((id) => byTrial(id, signal))]);

export const valueOfMetric = ({ path, trial, experiment }: Subject): number | undefined => {
  const value = path === 'trial' ? trial?.searcherMetricValue : experiment.bestTrialSearcherMetric;
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
};

// The index of the best value; undefined without values.
export function bestPlace(values: readonly (number | undefined)[], smallerIsBetter: boolean): number | undefined {
  let best: number | undefined;
  values.forEach((value, at) => {
    const before = best === undefined ? undefined : values[best];
    if (value !== undefined && (before === undefined || (smallerIsBetter ? value < before : value > before))) best = at;
  });
  return best;
}

// The difference from a first value with its sign: "+0.01"; "" if one is unknown or both read the same.
export const against = (value: number | undefined, first: number | undefined): string =>
  value === undefined || first === undefined || metric(value) === metric(first) ? '' : `${value < first ? '−' : '+'}${metric(Number(Math.abs(value - first).toPrecision(3)))}`;

export interface Row {
  name: string;
  values: string[]; // one per subject; "" if missing
  differs: boolean;
}

export const valueText = (value: JsonValue | undefined): string =>
  value === undefined ? '' : typeof value === 'number' ? (Number.isSafeInteger(value) ? String(value) : metric(value)) : typeof value === 'string' ? value : JSON.stringify(value);

// All leaves of the objects as rows, by name. `differs` compares exact values, not the rounded text.
export function rowsOf(objects: readonly (JsonObject | null | undefined)[]): Row[] {
  const flat = objects.map((one) => flatten(sorted(one ?? {})));
  const names = [...new Set(flat.flatMap((one) => [...one.keys()]))].sort();
  return names.map((name) => {
    const values = flat.map((one) => one.get(name));
    const exact = values.map((value) => JSON.stringify(value) ?? '');
    return { name, values: values.map(valueText), differs: exact.some((one) => one !== exact[0]) };
  });
}
