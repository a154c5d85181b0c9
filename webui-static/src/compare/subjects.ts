// Subjects of a comparison: trials, or experiments represented by their best trial.
import * as api from '../api';
import type { Experiment, JsonObject, Trial } from '../wire';
import type { Run } from '../workbench/runs';

export const MAX_COMPARED = 20;

export interface Subject {
  name: string; // "experiment 7", "trial 12"
  path: 'experiment' | 'trial';
  experiment: Experiment;
  trial: Trial | undefined; // provides the curves
  training?: JsonObject | undefined; // its metrics at the best validation, as far as the run table has them
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

// The subject with the values of its row in the run table: table and comparison are loaded at different times.
export function withRow(one: Subject, { kind, experiment: row, trial: rowTrial, training }: Run): Subject {
  const { state, endTime, numTrials, bestTrialId, bestTrialSearcherMetric } = row;
  const experiment = { ...one.experiment, state, endTime, numTrials, bestTrialId, bestTrialSearcherMetric };
  if (!one.trial || !rowTrial || rowTrial.id !== one.trial.id) return { ...one, experiment };
  // A row of an experiment does not have the batch of the best validation.
  const known = rowTrial.searcherMetricValue === one.trial.searcherMetricValue ? one.trial.bestValidation?.totalBatches : undefined;
  const bestValidation = rowTrial.bestValidation && { ...rowTrial.bestValidation, totalBatches: rowTrial.bestValidation.totalBatches || (known ?? 0) };
  const trial = { ...one.trial, bestValidation, searcherMetricValue: rowTrial.searcherMetricValue };
  if (kind === 'experiment') return { ...one, experiment, trial, training };
  const { state: trialState, endTime: trialEnd, totalBatchesProcessed } = rowTrial;
  return { ...one, experiment, trial: { ...trial, state: trialState, endTime: trialEnd, totalBatchesProcessed } };
}

// The id of the compared run.
export const idOf = ({ path, trial, experiment }: Subject): number => (path === 'trial' ? (trial?.id ?? 0) : experiment.id);
