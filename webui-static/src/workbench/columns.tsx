// Columns of run tables: title, width, content. Values are in runs.ts.
import type { ComponentChildren } from 'preact';
import { flatten, isWide } from '../charts/dimensions';
import { Name } from '../components/Name';
import { Archived, Progress, StateBadge } from '../components/notes';
import { Time } from '../components/Time';
import { bytes, decimals, digits, grouped, isEnded, lasted, metric, metricColumn, percent, progressOf, span, stateTone, withoutPadding } from '../format';
import { paths } from '../address';
import { stageText } from '../search/lanes';
import { NAMES } from './fitted';
import type { JsonValue } from '../wire';
import { experimentTitle, hasLevels, isSearch, openKeys, openPrefix, shownState, valueOf, type Run, type RunKind } from './runs';

export interface Column {
  key: string; // name in addresses and in the master's API
  title: string;
  width: number; // pixels
  number?: boolean;
  text?: (value: number) => string; // with the decimal places or the unit of the column
  deviation?: (value: number) => string; // default: two digits
  inGroup?: 'mean' | 'range'; // what a row of a group shows: mean ± deviation of results, the range of hyperparameters
  class?: string; // of its cells
  beside?: Column | undefined; // the column whose values are part of this one's cells
  of?: RunKind; // only in tables of these
  cell: (run: Run, nowMs: number) => ComponentChildren;
}

export const BEST = 'searcherMetricsVal';

const Best = ({ run, format }: { run: Run; format: typeof digits }) => {
  const { experiment, trial } = run;
  const value = run.kind === 'trial' ? trial?.searcherMetricValue : experiment.bestTrialSearcherMetric;
  const text = format(value);
  const best = run.kind === 'experiment' ? experiment.bestTrialId : undefined;
  return text !== '' && best ? (
    <a href={paths.trial(best)} aria-label={`Best trial of experiment ${run.id}: ${text}`}>
      {text}
    </a>
  ) : (
    <>{text || <None />}</>
  );
};

// Content of a cell without a value.
export const None = () => <span class="quiet">–</span>;

// Rows with the names that are compared, and the characters that names with the same beginning share.
const COMPARED_NAMES = 500;
const SHARED = 10;

// The names that another one begins like: only those keep their end where they are shortened.
function siblings(names: readonly string[]): ReadonlySet<string> {
  const found = new Map<string, Set<string>>();
  for (const name of names) {
    const start = name.slice(0, SHARED);
    found.set(start, (found.get(start) ?? new Set()).add(name));
  }
  return new Set([...found.values()].flatMap((all) => (all.size > 1 ? [...all] : [])));
}

const titleOf = ({ kind, experiment }: Run): string => (kind === 'trial' ? experimentTitle(experiment) : experiment.name || `Experiment ${experiment.id}`);

// The name of an experiment, as a link.
function Title({ run, alike = NONE }: { run: Run; alike?: ReadonlySet<string> }) {
  const { kind, experiment } = run;
  const text = titleOf(run);
  return (
    <span class="named">
      <a href={paths.experiment(experiment.id)} title={text} aria-label={experiment.name ? text : undefined}>
        {alike.has(text) ? <Name text={text} /> : <Name text={text} end="" />}
      </a>
      {kind === 'experiment' && experiment.numTrials > 1 && <span class="quiet trials-of" title={`The best of ${experiment.numTrials} trials`}>×{experiment.numTrials}</span>}
      {kind === 'experiment' && experiment.archived && <Archived />}
    </span>
  );
}
const NONE: ReadonlySet<string> = new Set();

const count = (key: string, title: string, width: number, of?: RunKind): Column => ({
  key,
  title,
  width,
  number: true,
  ...(of ? { of } : {}),
  cell: (run) => grouped(Number(valueOf(run, key) ?? 0)),
});
// The properties of numbers with a unit.
const inUnits = (text: (value: number) => string): Pick<Column, 'number' | 'text' | 'deviation'> => ({ number: true, text, deviation: text });
const word = (key: string, title: string, width: number): Column => ({ key, title, width, of: 'experiment', cell: (run) => valueOf(run, key) as string });

// Formats a mean like the values of a column. The mean of integers has one decimal.
const placed = (places: number | undefined) => (value: number): string =>
  places === undefined || metric(value).includes('e') ? metric(value) : Number.isInteger(value) && places === 0 ? String(value) : value.toFixed(Math.max(1, places));

// The progress of a run, 0..1.
export const partOf = (run: Run): number | undefined => (run.kind === 'trial' ? (run.trial?.progress ?? undefined) : progressOf(run.experiment));

// The state, and how far a running one is.
function State({ run }: { run: Run }) {
  const [state, part] = [shownState(run), partOf(run)];
  return (
    <>
      <StateBadge state={state} />
      {part !== undefined && stateTone(state) === 'busy' && <span class="quiet"> {percent(part)}</span>}
    </>
  );
}

// Rows with the values that decide how a column is aligned.
const SAMPLE = 50;

const FIXED: Column[] = [
  { key: 'id', title: 'ID', width: 60, number: true, cell: (run) => (run.kind === 'trial' ? <a href={paths.trial(run.id)}>{run.id}</a> : run.id) },
  { key: 'name', title: 'Name', width: 240, of: 'experiment', cell: (run) => <Title run={run} /> },
  { key: 'experiment', title: 'Experiment', width: 240, of: 'trial', cell: (run) => <Title run={run} /> },
  word('description', 'Description', 260),
  {
    key: 'tags',
    title: 'Labels',
    width: 160,
    of: 'experiment',
    cell: ({ experiment }) =>
      experiment.labels.map((label) => (
        <span class="tag" key={label}>
          {label}
        </span>
      )),
  },
  { key: 'state', title: 'State', width: 120, cell: (run) => <State run={run} /> },
  {
    key: 'progress',
    title: 'Progress',
    width: 144,
    cell: (run) => (
      <Progress
        value={isEnded(run.state) ? undefined : partOf(run)}
        label={`Progress of ${run.kind} ${run.id}`}
      />
    ),
  },
  { key: BEST, title: 'Best metric', width: 104, number: true, cell: (run) => <Best run={run} format={digits} /> },
  { key: 'stage', title: 'Stage', width: 64, of: 'trial', cell: ({ stage }) => stage && <span title={stageText(stage)}>{`${stage.at}/${stage.of}`}</span> },
  { key: 'schedule', title: 'Schedule', width: 80, of: 'trial', cell: ({ stage }) => stage && <span title={`Schedule (bracket) ${stage.schedule} of ${stage.schedules}`}>{stage.schedule}</span> },
  count('batches', 'Batches', 80, 'trial'),
  { key: 'startTime', title: 'Started', width: 104, cell: (run) => (run.state === 'STATE_QUEUED' ? '' : <Time at={valueOf(run, 'startTime') as string} />) },
  { key: 'endTime', title: 'Ended', width: 104, cell: (run) => <Time at={valueOf(run, 'endTime') as string} /> },
  {
    key: 'duration',
    title: 'Duration',
    width: 96,
    ...inUnits(lasted),
    cell: (run, now) => (run.state === 'STATE_QUEUED' ? '' : span(valueOf(run, 'startTime') as string, valueOf(run, 'endTime') as string, now)),
  },
  count('numTrials', 'Trials', 72, 'experiment'),
  word('user', 'User', 96),
  word('resourcePool', 'Pool', 112),
  word('searcherType', 'Searcher', 120),
  word('searcherMetric', 'Metric', 136),
  count('restarts', 'Restarts', 80, 'trial'),
  count('checkpointCount', 'Checkpoints', 104),
  {
    key: 'checkpointSize',
    title: 'Checkpoint size',
    width: 128,
    ...inUnits((value) => bytes(Math.round(value))),
    cell: (run) => bytes(Number(valueOf(run, 'checkpointSize') ?? 0)),
  },
  // Ids are aligned like numbers, but have no mean.
  { key: 'forkedFrom', title: 'Forked from', width: 104, class: 'number', of: 'experiment', cell: ({ experiment }) => experiment.forkedFrom },
];

export const DEFAULT_COLUMNS: Record<RunKind, readonly string[]> = {
  experiment: ['id', 'name', 'state', 'searcherMetricsVal', 'startTime', 'duration', 'numTrials', 'user'],
  trial: ['id', 'state', 'searcherMetricsVal', 'batches', 'duration', 'startTime'],
};

// Default columns for trials of several experiments.
export const WITH_EXPERIMENT: readonly string[] = ['id', 'experiment', ...DEFAULT_COLUMNS.trial.slice(1)];

// Rows that are looked at for their values, and pixels of the frame around a table.
const LOOKED_AT = 100;
const FRAME_WIDTH = 136 + 58;
// Hyperparameters beside charts.
const FEW = 2;

// Whether a default column says anything about these rows: not if one has to have different values and all are equal.
const isUseful = (key: string, looked: readonly Run[]): boolean =>
  !['user', 'numTrials'].includes(key) || looked.length < 2 || new Set(looked.map((run) => valueOf(run, key))).size > 1;

// The hyperparameters that differ, of those that half of the runs have: first those with the widest range, as learning
// rates, then those with most values. Called for each drawing of the table, so each trial is looked at once.
function differing(runs: readonly Run[]): string[] {
  const values = new Map<string, JsonValue[]>();
  const trials = runs.flatMap(({ trial }) => (trial ? [flatten(trial.hparams)] : []));
  for (const flat of trials) for (const [name, value] of flat) values.get(name)?.push(value) ?? values.set(name, [value]);
  return [...values]
    .filter(([, all]) => 2 * all.length >= trials.length)
    .map(([name, all]) => {
      const numbers = all.filter((value) => typeof value === 'number');
      return { name, count: new Set(all).size, wide: Number(numbers.length === all.length && isWide(Math.min(...numbers), Math.max(...numbers))) };
    })
    .filter(({ count }) => count > 1)
    .sort((a, b) => b.wide - a.wide || b.count - a.count || a.name.localeCompare(b.name))
    .map(({ name }) => `hp.${name}`);
}

// The default columns of experiments: those of DEFAULT_COLUMNS that say anything, and after the metric hyperparameters:
// two beside charts, otherwise as many as there is room for in a window of this width, and then the labels.
export function usualColumns(runs: readonly Run[], beside: boolean, width: number): readonly string[] {
  const looked = runs.slice(0, LOOKED_AT);
  const own = DEFAULT_COLUMNS.experiment.filter((key) => isUseful(key, looked));
  const widthOf = (key: string): number => {
    const one = column(key);
    return one ? aligned(one, looked).width : 0;
  };
  let room = own.reduce((left, key) => left - (column(key)?.width ?? 0), width - FRAME_WIDTH);
  const labels = new Set(looked.map(({ experiment }) => experiment.labels.join(','))).size > 1 ? ['tags'] : [];
  const more = beside ? differing(looked).slice(0, FEW) : [...differing(looked), ...labels].filter((key) => (room -= widthOf(key)) >= 0);
  const at = own.indexOf(BEST) + 1;
  return [...own.slice(0, at), ...more, ...own.slice(at)];
}

// Pixels of a character of a cell and of a head, of the padding, and of the arrow of an order.
const CELL_CHARACTER = 8;
const HEAD_CHARACTER = 6.5;
const PADDING = 24;
const ARROW = 14;
export const cellWidth = (text: string): number => PADDING + CELL_CHARACTER * text.length;
// Pixels of the longest values of a metric, such as -1.234e-5, and most of its name.
const METRIC_LEAST = PADDING + 9 * CELL_CHARACTER;
const METRIC_MOST = 200;

// The column with the metric's name in its title, which is known once all rows have the same one.
export function titled(one: Column, metricName: string | undefined): Column {
  if (one.key !== BEST || !metricName) return one;
  const title = `best ${metricName}`;
  return { ...one, title, width: Math.max(METRIC_LEAST, Math.min(METRIC_MOST, PADDING + ARROW + HEAD_CHARACTER * title.length)) };
}

// The column with a title that may be longer.
export const retitled = (one: Column, title: string): Column => ({ ...one, title, width: Math.max(one.width, PADDING + HEAD_CHARACTER * title.length) });

// The column of ids is as wide as the longest of them: pixels of the padding and of a digit.
const ID_PADDING = 26;
const DIGIT = 8.5;
const idWidth = (runs: readonly Run[]): number =>
  Math.max(60, Math.ceil(ID_PADDING + DIGIT * String(runs.reduce((most, { id }) => Math.max(most, id), 0)).length));

// The format of the searcher metric in the table of these rows, and in the comparison of some of them.
export const bestFormat = (runs: readonly Run[]): typeof digits => metricColumn(runs.slice(0, SAMPLE).map((run) => valueOf(run, BEST)));

// A number with its point below those of the other rows: padding zeros take room, but are not visible.
function PointAligned({ value, places }: { value: number; places: number }) {
  const [text, zeros] = withoutPadding(value, places);
  return (
    <>
      {text}
      {zeros !== '' && <span class="zeros">{zeros}</span>}
    </>
  );
}

// A column for these rows: an open one is as wide as its values, with the points of its numbers below each other, and
// text if none of the rows has a number in it; names that begin alike keep their ends.
export const aligned = (one: Column, runs: readonly Run[]): Column => {
  if (one.key === 'id') return { ...one, width: idWidth(runs) };
  if (NAMES.includes(one.key)) {
    const alike = siblings(runs.slice(0, COMPARED_NAMES).map(titleOf));
    return { ...one, cell: (run) => <Title run={run} alike={alike} /> };
  }
  if (!openPrefix(one.key) && one.key !== BEST) return one;
  const values = runs.slice(0, SAMPLE).map((run) => valueOf(run, one.key)).filter((value) => value !== undefined);
  if (values.length === 0) return one;
  if (one.key === BEST) {
    const format = bestFormat(runs);
    return { ...one, text: format, cell: (run) => <Best run={run} format={format} /> };
  }
  const longest = Math.max(...values.map((value) => valueText(value).length));
  const width = PADDING + Math.max(CELL_CHARACTER * longest, HEAD_CHARACTER * one.title.length + 4);
  const numbers = values.filter((value) => typeof value === 'number');
  const places = decimals(numbers);
  const cell = (run: Run): ComponentChildren => {
    const value = valueOf(run, one.key);
    return typeof value === 'number' && places !== undefined ? <PointAligned value={value} places={places} /> : valueText(value);
  };
  return { ...one, width: Math.min(200, Math.max(56, width)), number: numbers.length > 0, text: placed(places), cell: one.key.startsWith('hp.') ? ofBest(cell) : cell };
};

// The hyperparameters of a search are those of its best trial.
const ofBest =
  (cell: (run: Run) => ComponentChildren) =>
  (run: Run): ComponentChildren =>
    isSearch(run) && run.trial ? (
      <span class="of-best" title={`Of the best trial, ${run.trial.id}, of ${run.experiment.numTrials}`}>
        {cell(run)}
      </span>
    ) : (
      cell(run)
    );

// More rows are not searched for the best value at each drawing of the table.
const MAX_JUDGED = 2000;

// The searcher metric's column with the best of the values marked; without two different values nothing is.
export function withBest(one: Column, runs: readonly Run[], smallerIsBetter: boolean): Column {
  if (one.key !== BEST || runs.length > MAX_JUDGED) return one;
  const values = runs.map((run) => valueOf(run, BEST)).filter((value) => typeof value === 'number');
  if (new Set(values).size < 2) return one;
  const best = values.reduce((a, b) => (smallerIsBetter ? Math.min(a, b) : Math.max(a, b)));
  return { ...one, cell: (run, now) => (valueOf(run, BEST) === best ? <strong class="best-value">{one.cell(run, now)}</strong> : one.cell(run, now)) };
}

export const valueText = (value: JsonValue | undefined): string => {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' || typeof value === 'string') return metric(value);
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value.join(', ') : JSON.stringify(value);
};

// The column of a key: a fixed one, "hp.NAME", "metadata.NAME", "validation.NAME" or "training.NAME".
export function column(key: string, kind: RunKind = 'experiment'): Column | undefined {
  const fixed = FIXED.find((one) => one.key === key);
  if (fixed) return fixed.of && fixed.of !== kind ? undefined : fixed;
  const prefix = openPrefix(key);
  if (!prefix) return undefined;
  const name = key.slice(prefix.length);
  // Training and validation metrics may share a name, so the title includes the kind.
  const title = hasLevels(prefix) ? name : `${name} (${prefix.slice(0, -1)})`;
  return { key, title, width: Math.min(200, Math.max(96, 48 + 7 * title.length)), number: true, cell: (run) => valueText(valueOf(run, key)) };
}

// Keys of all columns for these rows: the fixed ones, then those of their trials. Only trials of a search by halving have
// stages, and only those of several brackets a schedule.
export const available = (runs: readonly Run[], kind: RunKind): string[] => {
  const least: Record<string, number> = { stage: 1, schedule: 2 };
  const has = (key: string): boolean => runs.some(({ stage }) => (stage?.schedules ?? 0) >= (least[key] ?? 0));
  return [...FIXED.filter(({ key, of }) => (!of || of === kind) && (!(key in least) || has(key))).map(({ key }) => key), ...openKeys(runs)];
};
