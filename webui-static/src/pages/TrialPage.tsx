// Trial page: curves, log, checkpoints, hyperparameters, runs, and the profiler.
import type { ComponentChildren } from 'preact';
import * as api from '../api';
import { Metrics } from '../charts/Metrics';
import { attemptTone, savedIn, Timeline } from '../charts/Timeline';
import { Hparams } from '../charts/Hparams';
import type { ProfilerProps } from '../charts/Profiler';
import { flatten } from '../charts/dimensions';
import { useNow } from '../components/clock';
import { TrialCheckpoints, useCheckpoints } from '../components/Checkpoints';
import { ActionMenu } from '../components/ActionMenu';
import { Confirm } from '../components/Confirm';
import { Empty } from '../components/Empty';
import { Failure } from '../components/Failure';
import type { Props as LogProps } from '../log/LogView';
import { ErrorNote, StateBadge } from '../components/notes';
import { Table } from '../components/Table';
import { Time } from '../components/Time';
import { later } from '../components/later';
import type { FilesProps } from '../media/TrialFiles';
import { currentTab, Tabs } from '../components/Tabs';
import { dateTime, digits, grouped, isEnded, lasted, sorted, span, stateName } from '../format';
import { useLive } from '../live';
import { paths, useQuery, useTitle } from '../address';
import type { Allocation, Checkpoint, Experiment, JsonObject, Trial } from '../wire';
import { NotFoundPage } from '../components/NotFoundPage';
import { useColorOf } from '../workbench/runColors';
import { ofTrial, trialState } from '../workbench/runs';
import { PageHead } from './PageHead';
import { smallerIsBetter } from './ExperimentsPage';

const TABS = ['Metrics', 'Log', 'Checkpoints', 'Hyperparameters', 'Attempts', 'Files', 'Profiler'] as const;

const TrialActions = ({ trial }: { trial: Trial }) => (
  <div class="actions">
    <ActionMenu>
      <a class="button" href={paths.fork(trial.experimentId, trial.id)}>
        Continue in a new experiment…
      </a>
      {!isEnded(trial.state) && (
        <Confirm
          label="Kill…"
          title={`Kill trial ${trial.id}?`}
          yes="Kill"
          no="Keep it running"
          work={() => api.killTrial(trial.id)}
        >
          It ends at once, without saving a checkpoint. This cannot be undone.
        </Confirm>
      )}
    </ActionMenu>
  </div>
);

const TrialFiles = later<FilesProps>(async () => (await import('./more')).TrialFiles);
const LogView = later<LogProps>(async () => (await import('./more')).LogView);
const Profiler = later<ProfilerProps>(async () => (await import('./more')).Profiler);

function Head({ trial, experiment, brief, atLog }: { trial: Trial; experiment: Experiment | undefined; brief: boolean; atLog: boolean }) {
  const now = useNow(!isEnded(trial.state));
  const whole = span(trial.startTime, trial.endTime, now);
  const hasRun = isEnded(trial.state) && trial.wallClockTime > 0;
  const facts: [string, ComponentChildren][] = [
    ['building for', trial.buildTime ? span(trial.buildTime, undefined, now) : ''],
    hasRun ? ['ran', <span title={`${whole} from creation to end`}>{lasted(trial.wallClockTime)}</span>] : ['elapsed', <span title="since its creation">{whole}</span>],
    ['batches', grouped(trial.totalBatchesProcessed)],
    ['started', <Time at={trial.startTime} />],
    ['restarts', trial.restarts > 0 ? trial.restarts : ''],
    ['run', trial.run > 1 ? trial.run : ''],
  ];
  const best = digits(trial.searcherMetricValue);
  const name = experiment?.name || `Experiment ${trial.experimentId}`;
  return (
    <>
      <PageHead
        path={[
          [paths.experiments, 'Experiments'],
          [paths.experiment(trial.experimentId), name],
        ]}
        title={`Trial ${trial.id}`}
        brief={brief}
        facts={
          <>
            <StateBadge state={trialState(trial, experiment ?? {})} />
            {best !== '' && (
              <span class="best">
                <span class="quiet">best {experiment?.searcherMetric ?? 'metric'}</span> <strong>{best}</strong>
              </span>
            )}
            {facts
              .filter(([, value]) => value !== '')
              .map(([label, value]) => (
                <span key={label}>
                  {label !== '' && <span class="quiet">{label} </span>}
                  {value}
                </span>
              ))}
          </>
        }
      >
        <TrialActions trial={trial} />
      </PageHead>
      {trial.exitReason !== '' && <Failure trial={trial.id} reason={trial.exitReason} brief={brief} atLog={atLog} />}
    </>
  );
}

// The reason of an end. A preempted process was asked to save a checkpoint; the checkpoints tell whether it did.
function ending(one: Allocation, checkpoints: readonly Checkpoint[] | undefined): string {
  const code = one.exitCode != null && !one.exitMessage.includes(`exit code ${one.exitCode}`) ? `exit code ${one.exitCode}` : '';
  if (!/preempted/i.test(one.exitKind) || !checkpoints) return [code, one.exitMessage].filter((part) => part !== '').join(' · ');
  const steps = savedIn(one, checkpoints).map(({ stepsCompleted }) => stepsCompleted);
  return [code, steps.length > 0 ? `left on request, last checkpoint at batch ${grouped(Math.max(...steps))}` : 'left on request without a checkpoint']
    .filter((part) => part !== '')
    .join(' · ');
}

// The page has the reason of the trial above: here its first line is sufficient.
const briefly = (text: string, reason: string): string => {
  const [first = ''] = text.split('\n');
  return first !== '' && reason.startsWith(first) ? first : text;
};

const ATTEMPT_HEADS = ['#Attempt', 'State', 'Agent', 'Slot IDs', 'Started', '#Duration', 'How it ended'];

function Attempts({ trial }: { trial: Trial }) {
  const live = useLive(
    `attempts ${trial.id}`,
    (signal) => api.allocations(trial.id, signal),
    (change) => change === 'everything' || (change.kind === 'trial' && !change.sameState && change.trialId === trial.id),
  );
  const saved = useCheckpoints(trial.id);
  const now = useNow(live.data?.some((one) => !one.endTime) ?? false);
  if (live.data?.length === 0) return <Empty icon="tasks" title="No attempts yet">An attempt begins when the trial gets its slots.</Empty>;
  return (
    <>
      <ErrorNote error={live.error} retry={live.reload} />
      {live.data && <Timeline attempts={live.data} checkpoints={saved.data ?? []} nowMs={now} />}
      <Table label="Attempts" heads={ATTEMPT_HEADS}>
        {live.data?.map((one) => (
          <tr key={one.id}>
            <td class="number">{one.run}</td>
            <td>
              <span class={`state state-${attemptTone(one)}`}>{stateName((one.endTime && one.exitKind) || one.state)}</span>
            </td>
            <td>{one.agentId}</td>
            <td>{one.slots.join(', ')}</td>
            <td>{dateTime(one.startTime)}</td>
            <td class="number">{span(one.startTime, one.endTime, now)}</td>
            <td class="reason lines-kept">{briefly(ending(one, saved.data), trial.exitReason)}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function Values({ label, of, none }: { label: string; of: JsonObject; none: ComponentChildren }) {
  const all = [...flatten(sorted(of))];
  if (all.length === 0) return <p class="quiet">{none}</p>;
  return (
    <div class="table-frame narrow" role="region" aria-label={label} tabIndex={0}>
      <table class="values">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {all.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="reason">{typeof value === 'string' ? value : JSON.stringify(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Hyperparameters = ({ trial }: { trial: Trial }) => (
  <>
    <section aria-labelledby="hyperparameters-title">
      <h2 id="hyperparameters-title">Hyperparameters</h2>
      <Values label="Hyperparameters" of={trial.hparams ?? {}} none="This trial has no hyperparameters." />
    </section>
    <section aria-labelledby="metadata-title">
      <h2 id="metadata-title">Metadata</h2>
      <Values
        label="Metadata"
        of={trial.metadata ?? {}}
        none="No metadata. Programs set it by the HTTP API; each entry is a column of the table of experiments."
      />
    </section>
  </>
);

const NO_GROUPS: [] = [];

function Page({ trial }: { trial: Trial }) {
  const { query } = useQuery();
  const experiment = useLive(`experiment of ${trial.id}`, (signal) => api.experiment(trial.experimentId, signal), () => false).data;
  const colorOf = useColorOf('trial', NO_GROUPS, experiment ? [ofTrial(experiment, trial)] : []);
  const { id } = trial;
  const tab = currentTab(TABS, query.tab);
  return (
    <>
      <Head trial={trial} experiment={experiment} brief={tab !== 'Metrics'} atLog={tab === 'Log'} />
      <Tabs names={TABS} current={tab} />
      {tab === 'Metrics' && (
        <Metrics
          curves={[{ ...trial, name: '', color: experiment ? colorOf(id) : '' }]}
          single
          ended={isEnded(trial.state)}
          objective={experiment && { metric: experiment.searcherMetric, smallerIsBetter: smallerIsBetter(experiment) }}
          lead={<Hparams trial={trial} />}
        />
      )}
      {tab === 'Log' && <LogView of={`trials/${id}`} name={`trial ${id}`} taskId={trial.taskId} ended={isEnded(trial.state)} />}
      {tab === 'Checkpoints' && <TrialCheckpoints trial={trial} metricName={experiment?.searcherMetric} />}
      {tab === 'Hyperparameters' && <Hyperparameters trial={trial} />}
      {tab === 'Attempts' && <Attempts trial={trial} />}
      {tab === 'Files' && <TrialFiles id={id} />}
      {tab === 'Profiler' && <Profiler trial={trial} experiment={experiment} />}
    </>
  );
}

export function TrialPage({ id }: { id: number }) {
  useTitle(`Trial ${id}`);
  const live = useLive(
    `trial ${id}`,
    (signal) => api.trial(id, signal),
    (change) => change === 'everything' || (change.trialId === id && change.kind !== 'logs'),
    1000,
  );
  const trial = live.data;
  if (live.error?.status === 404) return <NotFoundPage what={`There is no trial ${id}.`} />;
  if (!trial) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  }
  return (
    <>
      <ErrorNote error={live.error} retry={live.reload} />
      <Page key={id} trial={trial} />
    </>
  );
}
