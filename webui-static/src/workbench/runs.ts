// Rows of the workbench: an experiment with its best trial, or a trial. Values of their columns. Pure.
import { flatten } from '../charts/dimensions';
import { progressOf, stateName } from '../format';
import type { Stage } from '../search/lanes';
import type { Experiment, FoundExperiment, JsonObject, JsonValue, Trial } from '../wire';

export type RunKind = 'experiment' | 'trial';

export interface Run {
  kind: RunKind;
  id: number; // of the experiment or trial
  label: string; // in keys and tooltips
  state: string;
  experiment: Experiment;
  trial: Trial | undefined; // the trial of the shown curves and values
  training: JsonObject | undefined; // metrics at the best validation
  stage?: Stage | undefined; // of a trial of a search by halving
}

// Whether a row is an experiment of several trials; its values are those of the best one.
export const isSearch = ({ kind, experiment }: Pick<Run, 'kind' | 'experiment'>): boolean => kind === 'experiment' && experiment.numTrials > 1;

// The name of an experiment with its id.
export const experimentTitle = ({ id, name }: Pick<Experiment, 'id' | 'name'>): string => (name === '' ? `Experiment ${id}` : `${name} (${id})`);

export const ofExperiment = ({ experiment, bestTrial, bestTraining }: FoundExperiment): Run => ({
  kind: 'experiment',
  id: experiment.id,
  label: experiment.name || `experiment ${experiment.id}`,
  state: experiment.state,
  experiment,
  trial: bestTrial ?? undefined,
  training: bestTraining ?? undefined,
});

// `isNamed`: the label has the name of the experiment.
export const ofTrial = (experiment: Experiment, trial: Trial, isNamed = false): Run => ({
  kind: 'trial',
  id: trial.id,
  label: isNamed ? `trial ${trial.id} · ${experiment.name || `experiment ${experiment.id}`}` : `trial ${trial.id}`,
  state: trial.state,
  experiment,
  trial,
  training: undefined,
});

// The value at a path of names; undefined when missing.
export function at(value: JsonValue | undefined | null, path: readonly string[]): JsonValue | undefined {
  let here: JsonValue | undefined | null = value;
  for (const name of path) {
    if (here === null || typeof here !== 'object' || Array.isArray(here)) return undefined;
    here = here[name];
  }
  return here ?? undefined;
}

// Whether the search compares trials after parts of their full length, and ends most of them there.
export const isHalving = ({ searcherType = '' }: Partial<Experiment>): boolean => /asha|halving/.test(searcherType);

// Whether a run is the only trial of its experiment, and remains so.
export const isOnlyTrial = ({ kind, experiment: { numTrials, config } }: Run): boolean =>
  kind === 'trial' && numTrials === 1 && Number(at(config, ['searcher', 'max_trials']) ?? 1) === 1;

export const STOPPED_EARLY = 'STATE_STOPPED_EARLY';

// The configured length of trials in batches. Records and epochs have different numbers of batches in each trial.
export function fullLength({ config }: Partial<Experiment>): number | undefined {
  const full = at(config, ['searcher', 'time_metric']) === 'batches' ? at(config, ['searcher', 'max_time']) : at(config, ['searcher', 'max_length', 'batches']);
  return typeof full === 'number' ? full : undefined;
}

// The state of a trial as it is shown: one that its search completed before its full length was stopped early.
export function trialState({ state, totalBatchesProcessed }: Trial, experiment: Partial<Experiment>): string {
  return state === 'STATE_COMPLETED' && isHalving(experiment) && totalBatchesProcessed < (fullLength(experiment) ?? 0) ? STOPPED_EARLY : state;
}

export const shownState = ({ kind, state, experiment, trial }: Run): string => (kind === 'trial' && trial ? trialState(trial, experiment) : state);

type Source = (run: Run) => JsonValue | undefined | null;

const ended = (run: Run): string | null | undefined => (run.kind === 'trial' ? run.trial?.endTime : run.experiment.endTime);
const started = (run: Run): string | null | undefined => (run.kind === 'trial' ? run.trial?.startTime : run.experiment.startTime);

// The words of states, which tens of thousands of rows are grouped by.
const stateWords = new Map<string, string>();
function stateWordOf(state: string): string {
  const word = stateName(state).toLowerCase();
  stateWords.set(state, word);
  return word;
}

// Values of fixed columns. Names are those of the master's filter, where it has the column.
const OWN: Record<string, Source> = {
  id: (run) => run.id,
  name: (run) => (run.kind === 'trial' ? run.label : run.experiment.name),
  experiment: (run) => experimentTitle(run.experiment),
  description: (run) => (run.kind === 'trial' ? '' : run.experiment.description),
  tags: (run) => run.experiment.labels,
  state: ({ state }) => stateWords.get(state) ?? stateWordOf(state),
  progress: (run) => (run.kind === 'trial' ? run.trial?.progress : progressOf(run.experiment)),
  startTime: started,
  endTime: ended,
  duration: (run) => {
    const [from, to] = [started(run), ended(run)];
    return run.kind === 'experiment' ? run.experiment.duration : from ? ((to ? Date.parse(to) : Date.now()) - Date.parse(from)) / 1000 : undefined;
  },
  numTrials: (run) => run.experiment.numTrials,
  user: (run) => run.experiment.username,
  resourcePool: (run) => run.experiment.resourcePool,
  searcherType: (run) => run.experiment.searcherType,
  searcherMetric: (run) => run.experiment.searcherMetric,
  searcherMetricsVal: (run) => (run.kind === 'trial' ? run.trial?.searcherMetricValue : run.experiment.bestTrialSearcherMetric),
  checkpointCount: (run) => (run.kind === 'trial' ? run.trial?.checkpointCount : run.experiment.checkpointCount),
  checkpointSize: (run) => Number(run.kind === 'trial' ? run.trial?.totalCheckpointSize : run.experiment.checkpointSize),
  forkedFrom: (run) => run.experiment.forkedFrom,
  batches: (run) => run.trial?.totalBatchesProcessed,
  restarts: (run) => run.trial?.restarts,
  stage: ({ stage }) => stage && `${stage.at}/${stage.of}`,
  schedule: ({ stage }) => stage?.schedule,
};

// Columns for the values of the trial, by key prefix. Metric names may contain dots, so they are not split.
const OPEN: Record<string, { of: Source; levels: boolean }> = {
  'hp.': { of: ({ trial }) => trial?.hparams, levels: true },
  'metadata.': { of: ({ trial }) => trial?.metadata, levels: true },
  'validation.': { of: ({ trial }) => trial?.bestValidation?.metrics?.avgMetrics, levels: false },
  'training.': { of: ({ training }) => training, levels: false },
};

export const openPrefix = (key: string): string | undefined =>
  Object.keys(OPEN).find((prefix) => key.startsWith(prefix) && key.length > prefix.length);
export const isOpen = (key: string): boolean => openPrefix(key) !== undefined;
export const hasLevels = (prefix: string): boolean => OPEN[prefix]?.levels === true;

// Reads a column of many runs: its key is looked at once.
export function readerOf(key: string): (run: Run) => JsonValue | undefined {
  const own = OWN[key];
  if (own) return (run) => own(run) ?? undefined;
  const prefix = openPrefix(key) ?? '';
  const source = OPEN[prefix];
  const name = key.slice(prefix.length);
  const path = source?.levels ? name.split('.') : [name];
  return (run) => source && at(source.of(run), path);
}

// The value of a run in a column.
export const valueOf = (run: Run, key: string): JsonValue | undefined => readerOf(key)(run);

export const isNumber = (value: JsonValue | undefined): value is number => typeof value === 'number' && Number.isFinite(value);

export function numberOf(run: Run, key: string): number | undefined {
  const value = valueOf(run, key);
  return isNumber(value) ? value : undefined;
}

// Keys of the columns for hyperparameters, metadata and metrics of these runs, in order.
export function openKeys(runs: readonly Run[]): string[] {
  const found = new Set<string>();
  for (const run of runs)
    for (const [prefix, { of, levels }] of Object.entries(OPEN)) {
      const value = of(run);
      const names = levels ? flatten(value).keys() : Object.keys((value as JsonObject | null | undefined) ?? {});
      for (const name of names) found.add(`${prefix}${name}`);
    }
  return [...found].sort();
}

// The runs in the order of a column; runs without a value come last. Numbers by size, texts by letters.
export function inOrder(runs: readonly Run[], sorts: readonly { column: string; descending: boolean }[]): Run[] {
  const keys = sorts.map(({ column }) => runs.map(readerOf(column)));
  const order = runs.map((_, index) => index);
  const text = (value: JsonValue): string => (typeof value === 'string' ? value : JSON.stringify(value));
  order.sort((a, b) => {
    for (const [nth, { descending }] of sorts.entries()) {
      const [left, right] = [keys[nth]?.[a], keys[nth]?.[b]];
      if (left === right) continue;
      if (left === undefined || right === undefined) return left === undefined ? 1 : -1;
      const by = typeof left === 'number' && typeof right === 'number' ? left - right : text(left) < text(right) ? -1 : text(left) > text(right) ? 1 : 0;
      if (by !== 0) return descending ? -by : by;
    }
    return a - b;
  });
  return order.map((index) => runs[index] as Run);
}
