// Owns the view of one experiment: its state and what steers it, its trials, the charts and the log of the
// chosen trial.
import * as api from '../api';
import { TrialMetrics } from '../charts/TrialMetrics';
import { Actions } from '../components/Actions';
import { useNow } from '../components/clock';
import { LogView } from '../components/LogView';
import { ErrorNote, Progress, StateBadge } from '../components/notes';
import { TrialTable } from '../components/TrialTable';
import { bytes, dateTime, isEnded, metric, sorted, span } from '../format';
import { useLive } from '../live';
import { useQuery, useTitle } from '../address';
import type { Experiment } from '../wire';
import { NotFoundPage } from './NotFoundPage';

function Facts({ one }: { one: Experiment }) {
  const now = useNow(!isEnded(one.state));
  const facts: [string, string][] = [
    ['Started', dateTime(one.startTime)],
    ['Elapsed', span(one.startTime, one.endTime, now)],
    ['User', one.username],
    ['Searcher', one.searcherType],
    [`Best ${one.searcherMetric || 'metric'}`, metric(one.bestTrialSearcherMetric)],
    ['Pool', one.resourcePool],
    [
      'Checkpoints',
      one.checkpointCount > 0 ? `${one.checkpointCount} (${bytes(Number(one.checkpointSize))})` : '',
    ],
    ['Labels', one.labels.join(', ')],
  ];
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function Head({ one }: { one: Experiment }) {
  return (
    <>
      <div class="page-head">
        <div>
          <p class="quiet">Experiment {one.id}</p>
          <h1>{one.name || `Experiment ${one.id}`}</h1>
          {one.description !== '' && <p>{one.description}</p>}
        </div>
        <Actions experiment={one} />
      </div>
      <div class="state-line">
        <StateBadge state={one.state} />
        {one.progress != null && <Progress value={one.progress} label="Progress" />}
      </div>
      <Facts one={one} />
    </>
  );
}

function Config({ one }: { one: Experiment }) {
  return (
    <details class="config">
      <summary>Configuration</summary>
      <div class="two">
        <figure>
          <figcaption>As submitted</figcaption>
          <pre tabIndex={0}>{one.originalConfig}</pre>
        </figure>
        <figure>
          <figcaption>As resolved</figcaption>
          <pre tabIndex={0}>{JSON.stringify(sorted(one.config ?? null), null, 2)}</pre>
        </figure>
      </div>
    </details>
  );
}

export function ExperimentPage({ id }: { id: number }) {
  const { query, setQuery } = useQuery();
  const experiment = useLive(
    `experiment ${id}`,
    (signal) => api.experiment(id, signal),
    (change) =>
      change === 'everything' ||
      (change.experimentId === id && change.kind !== 'logs' && change.kind !== 'metrics'),
  );
  const trials = useLive(
    `trials ${id}`,
    (signal) => api.trials(id, signal),
    (change) => change === 'everything' || (change.experimentId === id && change.kind !== 'logs'),
    500,
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
  const wanted = Number(query.trial);
  const chosen =
    list.find((trial) => trial.id === wanted) ??
    list.find((trial) => trial.id === one.bestTrialId) ??
    list[0];
  return (
    <>
      <Head one={one} />
      <ErrorNote error={experiment.error ?? trials.error} retry={experiment.reload} />
      <Config one={one} />
      <section aria-labelledby="trials-title">
        <div class="section-head">
          <h2 id="trials-title">Trials</h2>
        </div>
        {trials.data && list.length === 0 && <p class="quiet">No trials yet.</p>}
        {list.length > 0 && (
          <TrialTable
            trials={list}
            chosen={chosen?.id}
            metricName={one.searcherMetric}
            choose={(trial) => setQuery({ trial: String(trial) })}
          />
        )}
      </section>
      {chosen && (
        <TrialMetrics key={`metrics ${chosen.id}`} trialId={chosen.id} ended={isEnded(chosen.state)} />
      )}
      {chosen && <LogView key={`log ${chosen.id}`} trialId={chosen.id} taskId={chosen.taskId} />}
    </>
  );
}
