// Experiment page: state and controls; tabs for curves, hyperparameters, search, code, configuration and log.
import * as api from '../api';
import * as changes from '../calls/changes';
import { HyperparameterViews } from '../charts/HyperparameterViews';
import { Metrics } from '../charts/Metrics';
import { ranks } from '../charts/search';
import { SearchView } from '../charts/SearchView';
import { seriesColors, useColors } from '../colors';
import { Explain } from '../cluster/Explain';
import { Actions } from '../components/Actions';
import { ExperimentCheckpoints } from '../components/Checkpoints';
import { useNow } from '../components/clock';
import { MAX_COMPARED } from '../compare/subjects';
import { CodeView } from '../components/CodeView';
import { Failure } from '../components/Failure';
import { LogView } from '../components/LogView';
import { MarkdownNotes } from '../components/MarkdownNotes';
import { ErrorNote, Progress, StateBadge } from '../components/notes';
import { currentTab, Facts, Tabs } from '../components/Tabs';
import { Time } from '../components/Time';
import { TrialTable } from '../experiment/TrialTable';
import { bytes, duration, isEnded, metric, progressOf, remaining, sorted, span } from '../format';
import { withEvent } from '../events';
import { useLive } from '../live';
import { paths, useQuery, useTitle } from '../address';
import type { Experiment, Trial } from '../wire';
import { NotFoundPage } from '../components/NotFoundPage';

const TABS = ['Metrics', 'Log', 'Hyperparameters', 'Search', 'Checkpoints', 'Code', 'Configuration', 'Notes'] as const;
// Number of trials drawn without a selection in the address, best first.
const DRAWN = 8;
const MAX_DRAWN = 100;
// Trials report several times a second; the page is read at most this often.
const RELOAD_GAP_MS = 1500;

function Head({ one, reload }: { one: Experiment; reload: () => void }) {
  const now = useNow(!isEnded(one.state));
  const left = one.state === 'STATE_RUNNING' ? remaining(progressOf(one), one.startTime, now) : undefined;
  return (
    <>
      <div class="page-head">
        <div>
          <p class="quiet">
            <a href={paths.experiments}>Experiments</a> / {one.id}
          </p>
          <h1>{one.name || `Experiment ${one.id}`}</h1>
          {one.description !== '' && <p>{one.description}</p>}
        </div>
        <Actions experiment={one} reload={reload} />
      </div>
      <div class="state-line">
        <StateBadge state={one.state} />
        {one.archived && <span class="quiet">archived</span>}
        <Progress value={progressOf(one)} label="Progress" />
        {left !== undefined && <span class="quiet">about {duration(left)} left</span>}
      </div>
      {one.state === 'STATE_QUEUED' && <Explain of="experiments" id={String(one.id)} jobId={one.jobId} />}
      <Facts
        facts={[
          ['Started', <Time at={one.startTime} />],
          ['Elapsed', span(one.startTime, one.endTime, now)],
          ['User', one.username],
          ['Searcher', one.searcherType],
          [`Best ${one.searcherMetric || 'metric'}`, metric(one.bestTrialSearcherMetric)],
          ['Best trial', one.bestTrialId ? <a href={paths.trial(one.bestTrialId)}>{one.bestTrialId}</a> : ''],
          ['Pool', one.resourcePool],
          [
            'Checkpoints',
            one.checkpointCount > 0 ? `${one.checkpointCount} (${bytes(Number(one.checkpointSize))})` : '',
          ],
          ['Forked from', one.forkedFrom ? <a href={paths.experiment(one.forkedFrom)}>{one.forkedFrom}</a> : ''],
          ['Labels', one.labels.map((label) => <span class="tag" key={label}>{label}</span>)],
          ['Project', one.projectName ? <a href={paths.project(one.projectId)}>{`${one.workspaceName} / ${one.projectName}`}</a> : ''],
        ]}
      />
    </>
  );
}

function Config({ one }: { one: Experiment }) {
  return (
    <div class="config two">
      <figure>
        <figcaption>As submitted</figcaption>
        <pre tabIndex={0}>{one.originalConfig}</pre>
      </figure>
      <figure>
        <figcaption>As resolved</figcaption>
        <pre tabIndex={0}>{JSON.stringify(sorted(one.config ?? null), null, 2)}</pre>
      </figure>
    </div>
  );
}

const NotesOf = ({ one, reload }: { one: Experiment; reload: () => void }) => (
  <MarkdownNotes
    text={one.notes}
    save={async (notes) => {
      await changes.patch(one.id, { notes });
      reload();
    }}
  />
);

const smallerIsBetter = (one: Experiment): boolean => {
  const searcher = one.config?.searcher;
  return !(searcher && typeof searcher === 'object' && !Array.isArray(searcher) && searcher.smaller_is_better === false);
};

function drawnTrials(one: Experiment, trials: Trial[], text: string | undefined): Trial[] {
  if (text !== undefined) {
    const wanted = new Set(text.split(',').map(Number));
    return trials.filter((trial) => wanted.has(trial.id)).slice(0, MAX_DRAWN);
  }
  const rank = ranks(trials, smallerIsBetter(one));
  return [...trials].sort((a, b) => (rank.get(a.id) ?? 2) - (rank.get(b.id) ?? 2)).slice(0, DRAWN);
}

function Curves({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const { query, setQuery } = useQuery();
  const drawn = drawnTrials(one, trials, query.trials);
  useColors();
  const inOrder = [...drawn].sort((a, b) => a.id - b.id);
  const colors = seriesColors(inOrder.length);
  const colored = new Map(inOrder.map((trial, at) => [trial.id, colors[at] ?? '']));
  const ids = new Set(colored.keys());
  const toggle = (id: number): void => {
    if (!ids.delete(id)) ids.add(id);
    setQuery({ trials: ids.size === 0 ? '0' : [...ids].sort((a, b) => a - b).join(',') });
  };
  return (
    <>
      <section aria-labelledby="trials-title">
        <div class="section-head">
          <h2 id="trials-title">Trials</h2>
          <span class="quiet">
            {trials.length} in all, {drawn.length} drawn
          </span>
          {drawn.length < Math.min(trials.length, MAX_DRAWN) && (
            <button type="button" class="plain" onClick={() => setQuery({ trials: trials.slice(0, MAX_DRAWN).map((trial) => trial.id).join(',') })}>
              Draw {trials.length <= MAX_DRAWN ? `all ${trials.length}` : `the first ${MAX_DRAWN}`}
            </button>
          )}
          {drawn.length > 1 && drawn.length <= MAX_COMPARED && (
            <a href={paths.compare('trials', drawn.map((trial) => trial.id))}>Compare those drawn</a>
          )}
        </div>
        {trials.length === 0 ? (
          <p class="quiet">No trials yet.</p>
        ) : (
          <TrialTable
            trials={trials}
            drawn={colored}
            metricName={one.searcherMetric}
            smallerIsBetter={smallerIsBetter(one)}
            toggle={toggle}
          />
        )}
      </section>
      {drawn.length > 0 && (
        <Metrics
          trials={inOrder}
          ended={drawn.every((trial) => isEnded(trial.state))}
        />
      )}
    </>
  );
}

function Log({ one, trials }: { one: Experiment; trials: Trial[] }) {
  const { query, setQuery } = useQuery();
  const chosen =
    trials.find((trial) => trial.id === Number(query.trial)) ??
    trials.find((trial) => trial.id === one.bestTrialId) ??
    trials[0];
  if (!chosen) return <p class="quiet">No trials yet.</p>;
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
      <LogView of={`trials/${chosen.id}`} name={`trial ${chosen.id}`} taskId={chosen.taskId} />
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
    RELOAD_GAP_MS,
    withEvent,
  );
  const trials = useLive(
    `trials ${id}`,
    (signal) => api.trials(id, signal),
    (change) => change === 'everything' || (change.experimentId === id && change.kind !== 'logs'),
    RELOAD_GAP_MS,
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
  const failed = list.find((trial) => trial.state === 'STATE_ERROR' && trial.exitReason !== '');
  const tab = currentTab(TABS, query.tab);
  return (
    <>
      <Head one={one} reload={experiment.reload} />
      {one.state === 'STATE_ERROR' && failed && <Failure trial={failed.id} reason={failed.exitReason} />}
      <ErrorNote error={experiment.error ?? trials.error} retry={experiment.reload} />
      <Tabs names={TABS} current={tab} />
      {tab === 'Metrics' && trials.data && <Curves one={one} trials={list} />}
      {tab === 'Log' && trials.data && <Log one={one} trials={list} />}
      {tab === 'Hyperparameters' && (
        <HyperparameterViews
          trials={list}
          hyperparameters={one.config?.hyperparameters}
          metricName={one.searcherMetric}
          smallerIsBetter={smallerIsBetter(one)}
        />
      )}
      {tab === 'Search' && trials.data && (
        <SearchView
          experimentId={id}
          trials={list}
          startTime={one.startTime}
          metricName={one.searcherMetric}
          smallerIsBetter={smallerIsBetter(one)}
        />
      )}
      {tab === 'Checkpoints' && <ExperimentCheckpoints one={one} smallerIsBetter={smallerIsBetter(one)} />}
      {tab === 'Code' && <CodeView experimentId={id} />}
      {tab === 'Configuration' && <Config one={one} />}
      {tab === 'Notes' && <NotesOf one={one} reload={experiment.reload} />}
    </>
  );
}
