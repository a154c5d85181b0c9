// Columns of the experiment table: content, width, and the name under which the master sorts.
import type { ComponentChildren } from 'preact';
import { Progress, StateBadge } from './components/notes';
import { Time } from './components/Time';
import { bytes, metric, progressOf, span } from './format';
import { paths } from './address';
import type { FoundExperiment, JsonValue } from './wire';

export interface Column {
  key: string; // name in addresses and in the master's API
  title: string;
  width: number; // pixels
  number?: boolean;
  cell: (one: FoundExperiment, nowMs: number) => ComponentChildren;
}

const FIXED: Column[] = [
  { key: 'id', title: 'ID', width: 75, number: true, cell: ({ experiment }) => experiment.id },
  {
    key: 'name',
    title: 'Name',
    width: 290,
    cell: ({ experiment }) => (
      <a href={paths.experiment(experiment.id)} title={experiment.name}>
        {experiment.name || `Experiment ${experiment.id}`}
      </a>
    ),
  },
  { key: 'description', title: 'Description', width: 260, cell: ({ experiment }) => experiment.description },
  {
    key: 'tags',
    title: 'Labels',
    width: 180,
    cell: ({ experiment }) =>
      experiment.labels.map((label) => (
        <span class="tag" key={label}>
          {label}
        </span>
      )),
  },
  {
    key: 'state',
    title: 'State',
    width: 135,
    cell: ({ experiment }) => <StateBadge state={experiment.state} />,
  },
  {
    key: 'progress',
    title: 'Progress',
    width: 160,
    cell: ({ experiment }) => <Progress value={progressOf(experiment)} label={`Progress of experiment ${experiment.id}`} />,
  },
  {
    key: 'startTime',
    title: 'Started',
    width: 120,
    cell: ({ experiment }) => <Time at={experiment.startTime} />,
  },
  { key: 'endTime', title: 'Ended', width: 120, cell: ({ experiment }) => <Time at={experiment.endTime} /> },
  {
    key: 'duration',
    title: 'Duration',
    width: 105,
    number: true,
    cell: ({ experiment }, now) => span(experiment.startTime, experiment.endTime, now),
  },
  { key: 'numTrials', title: 'Trials', width: 75, number: true, cell: ({ experiment }) => experiment.numTrials },
  { key: 'user', title: 'User', width: 100, cell: ({ experiment }) => experiment.username },
  { key: 'resourcePool', title: 'Pool', width: 120, cell: ({ experiment }) => experiment.resourcePool },
  { key: 'searcherType', title: 'Searcher', width: 130, cell: ({ experiment }) => experiment.searcherType },
  { key: 'searcherMetric', title: 'Metric', width: 160, cell: ({ experiment }) => experiment.searcherMetric },
  {
    key: 'searcherMetricsVal',
    title: 'Best metric',
    width: 120,
    number: true,
    cell: ({ experiment }) => metric(experiment.bestTrialSearcherMetric),
  },
  {
    key: 'checkpointCount',
    title: 'Checkpoints',
    width: 120,
    number: true,
    cell: ({ experiment }) => experiment.checkpointCount,
  },
  {
    key: 'checkpointSize',
    title: 'Checkpoint size',
    width: 140,
    number: true,
    cell: ({ experiment }) => bytes(Number(experiment.checkpointSize)),
  },
  {
    key: 'forkedFrom',
    title: 'Forked from',
    width: 120,
    number: true,
    cell: ({ experiment }) => experiment.forkedFrom,
  },
];

export const DEFAULT_COLUMNS = [
  'id',
  'name',
  'state',
  'progress',
  'startTime',
  'duration',
  'numTrials',
  'searcherMetricsVal',
  'user',
];

const text = (value: JsonValue | undefined): string =>
  value === undefined || value === null
    ? ''
    : typeof value === 'number' || typeof value === 'string'
      ? metric(value)
      : JSON.stringify(value);

// The value at a path of names; undefined when missing.
export function at(value: JsonValue | undefined | null, path: string[]): JsonValue | undefined {
  let here: JsonValue | undefined | null = value;
  for (const name of path) {
    if (here === null || typeof here !== 'object' || Array.isArray(here)) return undefined;
    here = here[name];
  }
  return here ?? undefined;
}

// Columns for the values of the best trial, by key prefix.
const OPEN: Record<string, { of: (one: FoundExperiment) => JsonValue | undefined | null; levels: boolean }> = {
  'hp.': { of: ({ bestTrial }) => bestTrial?.hparams, levels: true },
  'metadata.': { of: ({ bestTrial }) => bestTrial?.metadata, levels: true },
  // Metric names may contain dots, so they are not split into levels.
  'validation.': { of: ({ bestTrial }) => bestTrial?.bestValidation?.metrics?.avgMetrics, levels: false },
  'training.': { of: ({ bestTraining }) => bestTraining, levels: false },
};
const openPrefix = (key: string): string | undefined =>
  Object.keys(OPEN).find((prefix) => key.startsWith(prefix) && key.length > prefix.length);
export const isOpen = (key: string): boolean => openPrefix(key) !== undefined;

// The value of an experiment in a column of OPEN.
export function openValue(key: string, one: FoundExperiment): JsonValue | undefined {
  const prefix = openPrefix(key) ?? '';
  const source = OPEN[prefix];
  const name = key.slice(prefix.length);
  return source && at(source.of(one), source.levels ? name.split('.') : [name]);
}

// The column of a key: a fixed one, "hp.NAME", "metadata.NAME", "validation.NAME" or "training.NAME".
export function column(key: string): Column | undefined {
  const fixed = FIXED.find((one) => one.key === key);
  if (fixed) return fixed;
  const prefix = openPrefix(key);
  if (!prefix) return undefined;
  const name = key.slice(prefix.length);
  // Training and validation metrics may share a name, so the title includes the kind.
  const title = OPEN[prefix]?.levels ? name : `${name} (${prefix.slice(0, -1)})`;
  return { key, title, width: title === name ? 150 : 180, number: true, cell: (one) => text(openValue(key, one)) };
}

function names(value: JsonValue | undefined | null, prefix: string, out: Set<string>): void {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (inner !== null && typeof inner === 'object' && !Array.isArray(inner)) names(inner, `${prefix}${name}.`, out);
    else out.add(`${prefix}${name}`);
  }
}

// All columns for these rows: the fixed ones, then those of their best trials.
export function available(rows: readonly FoundExperiment[]): string[] {
  const found = new Set<string>();
  for (const one of rows)
    for (const [prefix, { of, levels }] of Object.entries(OPEN)) {
      if (levels) names(of(one), prefix, found);
      else for (const name of Object.keys(of(one) ?? {})) found.add(`${prefix}${name}`);
    }
  return [...FIXED.map((one) => one.key), ...[...found].sort()];
}
