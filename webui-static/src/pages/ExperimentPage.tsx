// Experiment page: a header with state and controls; tabs for the trials as a workbench, log and profiler of a trial,
// checkpoints, code, configuration and notes.
import * as api from '../api';
import { RUNS_BEAT_MS } from '../beat';
import { brackets, type Brackets } from '../calls/brackets';
import * as changes from '../calls/changes';
import { Hparams } from '../charts/Hparams';
import { dimensions, flatten, type Dimension } from '../charts/dimensions';
import type { Props as SearchProps } from '../search/SearchView';
import { Explain } from '../cluster/Explain';
import { Actions } from '../components/Actions';
import { ExperimentCheckpoints } from '../components/Checkpoints';
import { useNow } from '../components/clock';
import { later } from '../components/later';
import { Empty } from '../components/Empty';
import { Failure } from '../components/Failure';
import type { Props as LogProps } from '../log/LogView';
import { Icon } from '../components/Icon';
import type { Props as NotesProps } from '../components/MarkdownNotes';
import { Archived, ErrorNote, Progress, StateBadge } from '../components/notes';
import { currentTab, Facts, Tabs } from '../components/Tabs';
import { Time } from '../components/Time';
import { failedTrial } from '../failure';
import { bytes, counted, digits, grouped, isEnded, lasted, progressOf, roughly, span } from '../format';
import type { ProfilerProps } from '../charts/Profiler';
import { withEvent } from '../events';
import { useLive, type Live } from '../live';
import { paths, useQuery, useTitle } from '../address';
import { trialStages } from '../search/lanes';
import type { Experiment, Trial } from '../wire';
import { ConfigView } from '../components/Yaml';
import { NotFoundPage } from '../components/NotFoundPage';
import { PageHead } from './PageHead';
import { isHalving } from '../workbench/runs';
import { useTrialRuns } from '../workbench/sources';
import { timeLeft, trialsText } from '../workbench/target';
import { readView } from '../workbench/view';
import { Workbench } from '../workbench/Workbench';
import { smallerIsBetter } from './ExperimentsPage';
import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';

const CodeView = later<{ experimentId: number }>(async () => (await import('./more')).CodeView);
const MarkdownNotes = later<NotesProps>(async () => (await import('./more')).MarkdownNotes);
const LogView = later<LogProps>(async () => (await import('./more')).LogView);
const Profiler = later<ProfilerProps>(async () => (await import('./more')).Profiler);
const SearchView = later<SearchProps>(async () => (await import('./more')).SearchView);

const TABS = ['Trials', 'Log', 'Profiler', 'Checkpoints', 'Code', 'Configuration', 'Notes'] as const;
// Trials report several times a second; the page is read at most this often.
// The project of experiments that were created without one. It is not shown.
const UNCATEGORIZED = 1;

// The checkpoint with the best metric, to download.
function BestCheckpoint({ one }: { one: Experiment }) {
  const live = useLive(
    `best checkpoint ${one.id}`,
    async (signal) => (one.checkpointCount === 0 ? undefined : (await api.experimentCheckpoints(one.id, smallerIsBetter(one), 1, signal))[0]),
    (change) => change === 'everything' || (change.kind === 'checkpoint' && change.experimentId === one.id),
    RUNS_BEAT_MS,
  );
  if (!live.data) return null;
  const value = live.data.training?.searcherMetric;
  const what = `Download the best checkpoint, of batch ${live.data.stepsCompleted}${value == null ? '' : `: ${one.searcherMetric} ${digits(value)} when saved`}`;
  return (
    <a href={`/checkpoints/${encodeURIComponent(live.data.uuid)}`} download aria-label={what} title={what}>
      <Icon name="download" /> <span class="by-room">{value != null && value !== one.bestTrialSearcherMetric ? `Best checkpoint ${digits(value)}` : 'Checkpoint'}</span>
    </a>
  );
}

// Facts beside the title: progress, best metric with its trial, time left, checkpoint; then the origin.
function Summary({ one, trials, now }: { one: Experiment; trials: readonly Trial[]; now: number }) {
  const progress = progressOf(one);
  const left = timeLeft(one, trials);
  const [only] = trials;
  // Seconds with slots of the only trial, after the end.
  const ran = only && trials.length === 1 && isEnded(one.state) ? only.wallClockTime : 0;
  return (
    <>
      <StateBadge state={one.state} progress={progress} />
      {!isEnded(one.state) && progress !== undefined && (
        <span class="part">
          <Progress value={progress} label="Progress" />
        </span>
      )}
      {one.archived && <Archived />}
      {one.bestTrialId != null && (
        <span class="best">
          <span class="quiet">best {one.searcherMetric}</span> <strong>{digits(one.bestTrialSearcherMetric)}</strong>{' '}
          <a href={paths.trial(one.bestTrialId)}>trial {one.bestTrialId}</a>
        </span>
      )}
      <span>
        {ran > 0 ? (
          <span title={`${span(one.startTime, one.endTime, now)} from submission to end`}>
            <span class="quiet">ran</span> {lasted(ran)}
          </span>
        ) : (
          <span title="since submission">
            <span class="quiet">{one.state === 'STATE_QUEUED' ? 'waiting' : 'elapsed'}</span> {span(one.startTime, one.endTime, now)}
          </span>
        )}
        {left !== undefined && (
          <span class="quiet" title="at the mean speed so far">
            {' '}
            · {roughly(left)} left
          </span>
        )}
      </span>
      <BestCheckpoint key={one.checkpointCount === 0 ? 'none' : 'some'} one={one} />
      <span class="quiet by-width">
        by {one.username}
        {one.endTime && (
          <>
            , <Time at={one.endTime} />
          </>
        )}
      </span>
      {one.forkedFrom && (
        <span class="quiet">
          Forked from <a href={paths.experiment(one.forkedFrom)}>{one.forkedFrom}</a>
        </span>
      )}
    </>
  );
}

const pathTo = (one: Experiment): [string, string][] =>
  one.projectName && one.projectId !== UNCATEGORIZED
    ? [
        [paths.workspace(one.workspaceId), one.workspaceName],
        [paths.project(one.projectId), one.projectName],
      ]
    : [[paths.experiments, 'Experiments']];

function Head({ one, trials, reload, brief }: { one: Experiment; trials: readonly Trial[]; reload: () => void; brief: boolean }) {
  const now = useNow(!isEnded(one.state));
  const name = one.name || `Experiment ${one.id}`;
  return (
    <>
      <PageHead
        path={pathTo(one)}
        end={String(one.id)}
        title={name}
        hover={one.description ? `${name}\n${one.description}` : name}
        brief={brief}
        facts={<Summary one={one} trials={trials} now={now} />}
        labels={one.labels}
      >
        <Actions experiment={one} reload={reload} />
      </PageHead>
      {one.state === 'STATE_QUEUED' && <Explain of="experiments" id={String(one.id)} jobId={one.jobId} />}
    </>
  );
}

const Details = ({ one }: { one: Experiment }) => (
  <Facts
    facts={[
      ['ID', one.id],
      ['Labels', one.labels.join(', ')],
      ['Forked from', one.forkedFrom ? <a href={paths.experiment(one.forkedFrom)}>{one.forkedFrom}</a> : ''],
      ['Description', one.description],
      ['Started', <Time at={one.startTime} />],
      ['User', one.username],
      ['Searcher', one.searcherType],
      ['Pool', one.resourcePool],
      ['Checkpoints', one.checkpointCount > 0 ? `${one.checkpointCount} (${bytes(Number(one.checkpointSize))})` : ''],
    ]}
  />
);

const NotesOf = ({ one, reload }: { one: Experiment; reload: () => void }) => (
  <MarkdownNotes
    place={`experiments/${one.id}`}
    text={one.notes}
    save={async (notes) => {
      await changes.patch(one.id, { notes });
      reload();
    }}
  />
);

// Columns of trials besides the fixed ones: the hyperparameters that differ, those with a wide range first and choices
// last, or all of a single trial. The metrics of a running search, and of one by halving, are after different lengths.
const MAX_HPARAMS = 12;
const BY_RANGE = ['log', 'linear', 'words'] as const;
function trialColumns(one: Experiment, trials: readonly Trial[], schedules: number): string[] {
  const rank = ({ kind, isWhole = false }: Dimension): number => 2 * BY_RANGE.indexOf(kind) + Number(isWhole);
  const differing = dimensions(trials, one.config?.hyperparameters).sort((a, b) => rank(a) - rank(b)).map(({ name }) => name);
  const names = trials.length > 1 ? differing : [...flatten(trials[0]?.hparams).keys()];
  const parameters = names.slice(0, MAX_HPARAMS).map((name) => `hp.${name}`);
  const most = isHalving(one) || !isEnded(one.state) ? ['batches', ...parameters] : [...parameters, 'batches'];
  return ['id', 'state', 'searcherMetricsVal', ...(isHalving(one) ? ['stage'] : []), ...(schedules > 1 ? ['schedule'] : []), ...most, 'duration', 'startTime'];
}

// The brackets of a search by halving. Others stop no trial early and have none.
function useBrackets(one: Experiment): Live<Brackets> {
  return useLive(
    `brackets ${one.id} ${isHalving(one)}`,
    async (signal): Promise<Brackets> => (isHalving(one) ? brackets(one.id, signal) : { brackets: [], timeMetric: 'batches' }),
    (change) => isHalving(one) && (change === 'everything' || (change.experimentId === one.id && change.kind === 'trial')),
    RUNS_BEAT_MS,
  );
}

function Trials({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const { query } = useQuery();
  const read = readView(query);
  const smaller = smallerIsBetter(one);
  // Best first, unless the address has an order.
  const view = query.sort === undefined && trials.length > 1 ? { ...read, sorts: [{ column: 'searcherMetricsVal', descending: !smaller }] } : read;
  const plan = useBrackets(one);
  const stages = useMemo(() => trialStages(plan.data ?? { brackets: [], timeMetric: '' }, trials), [plan.data, trials]);
  const source = useTrialRuns(view, one, trials, stages);
  const schedules = plan.data?.brackets.length ?? 0;
  const columns = useMemo(() => trialColumns(one, trials, schedules), [one, trials, schedules]);
  const outside = source.top.filter(({ id }) => !source.rows.loaded().some((run) => run.id === id)).length;
  if (trials.length === 0) return <Empty icon="experiments" title="No trials yet">The search creates them when it starts.</Empty>;
  return (
    <Workbench
      kind="trial"
      title={
        <>
          <h2 class="hidden">Trials</h2>
          <span class="quiet found" role="status">
            {read.text === '' ? trialsText(one, trials) : `${grouped(source.rows.total ?? 0)} of ${counted(trials.length, 'trial')} found${outside > 0 ? ` · ${outside} pinned` : ''}`}
          </span>
          {trials.length === 1 && trials[0] && <Hparams trial={trials[0]} />}
        </>
      }
      source={source}
      columns={columns}
      sorts={view.sorts}
      objective={{ metric: one.searcherMetric, smallerIsBetter: smaller }}
      first={trials.length === 1 ? 'panels' : 'both'}
      none={<p class="quiet">No trial matches the filter.</p>}
      search={
        <SearchView experimentId={one.id} plan={plan} trials={trials} metricName={one.searcherMetric} smallerIsBetter={smaller} />
      }
    />
  );
}

// The contents of a tab for one trial: the chosen one, or else the failed or the best one, which stays while the tab is read.
function OfTrial({ one, trials, children }: { one: Experiment; trials: Trial[]; children: (trial: Trial) => ComponentChildren }) {
  const { query, setQuery } = useQuery();
  const first = useRef<number>();
  const withId = (id: number | null | undefined): Trial | undefined => trials.find((trial) => trial.id === id);
  first.current ??= (failedTrial(one, trials) ?? withId(one.bestTrialId) ?? trials[0])?.id;
  const chosen = withId(Number(query.trial)) ?? withId(first.current);
  if (!chosen) return <Empty icon="experiments" title="No trials yet">The search creates them when it starts.</Empty>;
  return (
    <>
      {trials.length > 1 && (
        <label class="check">
          Trial{' '}
          <select value={chosen.id} onChange={(e) => setQuery({ trial: e.currentTarget.value, line: '' })}>
            {trials.map((trial) => (
              <option key={trial.id} value={trial.id}>
                {trial.id}
              </option>
            ))}
          </select>
        </label>
      )}
      {children(chosen)}
    </>
  );
}

export function ExperimentPage({ id }: { id: number }) {
  const { query } = useQuery();
  const experiment = useLive(
    `experiment ${id}`,
    (signal) => api.experiment(id, signal),
    (change) =>
      change === 'everything' ||
      (change.experimentId === id && change.kind !== 'logs' && change.kind !== 'metrics'),
    RUNS_BEAT_MS,
    withEvent,
  );
  const trials = useLive(
    `trials ${id}`,
    (signal) => api.trials(id, signal),
    (change) => change === 'everything' || (change.experimentId === id && change.kind !== 'logs'),
    RUNS_BEAT_MS,
  );
  const one = experiment.data;
  useTitle(one ? `${one.name} (${id})` : `Experiment ${id}`);
  if (experiment.error?.status === 404) return <NotFoundPage what={`There is no experiment ${id}.`} />;
  if (!one) {
    return experiment.error ? (
      <ErrorNote error={experiment.error} retry={experiment.reload} />
    ) : (
      <p role="status">Loading…</p>
    );
  }
  const list = trials.data ?? [];
  const failed = failedTrial(one, list);
  const tab = currentTab(TABS, query.tab);
  return (
    <>
      <Head one={one} trials={list} reload={experiment.reload} brief={tab !== 'Trials'} />
      {failed && <Failure trial={failed.id} reason={failed.exitReason} brief={tab !== 'Trials'} atLog={tab === 'Log'} />}
      <ErrorNote error={experiment.error ?? trials.error} retry={experiment.reload} />
      <Tabs names={TABS} current={tab} />
      {tab === 'Trials' && trials.data && <Trials one={one} trials={list} />}
      {tab === 'Log' && trials.data && (
        <OfTrial one={one} trials={list}>
          {(trial) => (
            <LogView of={`trials/${trial.id}`} name={`trial ${trial.id}`} taskId={trial.taskId} ended={isEnded(trial.state)} keys={{ trial: String(trial.id) }} />
          )}
        </OfTrial>
      )}
      {tab === 'Profiler' && trials.data && (
        <OfTrial one={one} trials={list}>
          {(trial) => <Profiler key={trial.id} trial={trial} experiment={one} />}
        </OfTrial>
      )}
      {tab === 'Checkpoints' && <ExperimentCheckpoints one={one} smallerIsBetter={smallerIsBetter(one)} />}
      {tab === 'Code' && <CodeView experimentId={id} />}
      {tab === 'Configuration' && (
        <>
          <Details one={one} />
          <ConfigView submitted={one.originalConfig} resolved={one.config} />
        </>
      )}
      {tab === 'Notes' && <NotesOf one={one} reload={experiment.reload} />}
    </>
  );
}
