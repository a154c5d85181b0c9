// Owns the columns of the table of experiments: what each shows, how wide, by which name the master sorts it.
import type { ComponentChildren } from 'preact';
import { Progress, StateBadge } from './components/notes';
import { bytes, dateTime, metric, span } from './format';
import { paths } from './address';
import type { FoundExperiment, JsonValue } from './wire';

export interface Column {
  key: string; // in addresses; also the master's name of the column
  title: string;
  width: number; // pixels
  number?: boolean;
  cell: (one: FoundExperiment, nowMs: number) => ComponentChildren;
}

const kFixed: Column[] = [
  { key: 'id', title: 'ID', width: 95, number: true, cell: ({ experiment }) => experiment.id },
  {
    key: 'name',
    title: 'Name',
    width: 240,
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
    width: 145,
    cell: ({ experiment }) => <StateBadge state={experiment.state} />,
  },
  {
    key: 'progress',
    title: 'Progress',
    width: 165,
    cell: ({ experiment }) =>
      experiment.progress != null && (
        <Progress value={experiment.progress} label={`Progress of experiment ${experiment.id}`} />
      ),
  },
  {
    key: 'startTime',
    title: 'Started',
    width: 185,
    cell: ({ experiment }) => dateTime(experiment.startTime),
  },
  { key: 'endTime', title: 'Ended', width: 185, cell: ({ experiment }) => dateTime(experiment.endTime) },
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

export const kDefaultColumns = [
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

// The value at a path of names, or nothing.
export function at(value: JsonValue | undefined | null, path: string[]): JsonValue | undefined {
  let here: JsonValue | undefined | null = value;
  for (const name of path) {
    if (here === null || typeof here !== 'object' || Array.isArray(here)) return undefined;
    here = here[name];
  }
  return here ?? undefined;
}

// The column of this key: one of ours, "hp.NAME" or "validation.NAME".
export function column(key: string): Column | undefined {
  const fixed = kFixed.find((one) => one.key === key);
  if (fixed) return fixed;
  if (key.startsWith('hp.') && key.length > 3) {
    const path = key.slice(3).split('.');
    return {
      key,
      title: key.slice(3),
      width: 140,
      number: true,
      cell: ({ bestTrial }) => text(at(bestTrial?.hparams, path)),
    };
  }
  if (key.startsWith('validation.') && key.length > 11) {
    const name = key.slice(11);
    return {
      key,
      title: name,
      width: 150,
      number: true,
      cell: ({ bestTrial }) => text(bestTrial?.bestValidation?.metrics?.avgMetrics?.[name]),
    };
  }
  return undefined;
}

function names(value: JsonValue | undefined | null, prefix: string, out: Set<string>): void {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (inner !== null && typeof inner === 'object' && !Array.isArray(inner)) names(inner, `${prefix}${name}.`, out);
    else out.add(`${prefix}${name}`);
  }
}

// Every column there is for these rows: ours, then what their best trials have.
export function available(rows: readonly FoundExperiment[]): string[] {
  const found = new Set<string>();
  for (const { bestTrial } of rows) {
    names(bestTrial?.hparams, 'hp.', found);
    for (const name of Object.keys(bestTrial?.bestValidation?.metrics?.avgMetrics ?? {}))
      found.add(`validation.${name}`);
  }
  return [...kFixed.map((one) => one.key), ...[...found].sort()];
}
