// Home page: running and recently ended experiments, those that need attention, and a summary of the cluster.
import * as api from '../api';
import { paths, useTitle } from '../address';
import { SlotStrip } from '../cluster/SlotStrip';
import { UseBar, useAgents, useOf, useUnfinished } from '../cluster/use';
import { Name } from '../components/Name';
import { ErrorNote, StateBadge } from '../components/notes';
import { metricFormat, RunningCards, type MetricFormat } from '../components/RunningCards';
import { Time } from '../components/Time';
import { errorLine } from '../failure';
import { isEnded, lengthText } from '../format';
import { useLive } from '../live';
import { user } from '../session';
import { onPhone } from '../phone';
import type { Experiment } from '../wire';
import { FirstExperiment } from './ExperimentsPage';

const LATELY = 10;
const NEEDING_DAYS = 7;
const MAX_NEEDING = 20;

const useLately = () =>
  useLive(
    'lately',
    (signal) => api.experimentsBy([api.where('endTime', 'notEmpty')], 'endTime=desc', LATELY, signal),
    (change) => change === 'everything' || (change.kind === 'experiment' && !change.sameState),
    500,
  );

// The user's experiments that failed recently or are paused. Archiving one removes it from the list.
const useNeeding = (own: string) =>
  useLive(
    `needing ${own}`,
    (signal) => {
      const since = new Date(Date.now() - NEEDING_DAYS * 86_400_000).toISOString();
      const failed: api.Condition[] = [api.where('state', '=', 'STATE_ERROR'), api.where('endTime', '>', since)];
      const either: api.Condition[] = [
        api.where('state', '=', 'STATE_PAUSED'),
        { kind: 'group', conjunction: 'and', children: failed },
      ];
      const all: api.Condition[] = [api.where('user', '=', own), { kind: 'group', conjunction: 'or', children: either }];
      return api.experimentsBy(all, '', MAX_NEEDING, signal);
    },
    (change) => change === 'everything' || (change.kind === 'experiment' && !change.sameState),
    500,
  );

// Why the experiments failed: the error line of their first failed trial.
const MAX_REASONS = 8;
function useReasons(all: readonly Experiment[]): ReadonlyMap<number, string> | undefined {
  const failed = all.filter(({ state }) => state === 'STATE_ERROR').slice(0, MAX_REASONS).map(({ id }) => id);
  const live = useLive(
    `reasons ${failed.join()}`,
    async (signal) =>
      new Map(
        await Promise.all(
          failed.map(async (id) => {
            const trial = (await api.trials(id, signal)).find(({ exitReason }) => exitReason !== '');
            return [id, trial ? errorLine(trial.exitReason) : ''] as const;
          }),
        ),
      ),
    () => false,
  );
  return live.data;
}

interface ListProps {
  title: string;
  id: string;
  all: Experiment[];
  count: string;
  more?: string | undefined; // address of all, if there are more
  none: string;
  format: MetricFormat;
  reasons?: ReadonlyMap<number, string> | undefined;
}

// When the experiment reached its end, or was submitted: "failed 1 d ago", "submitted 5 min ago".
function Moment({ one }: { one: Experiment }) {
  if (!isEnded(one.state)) return <Time verb="submitted" at={one.startTime} />;
  return <Time verb={one.state === 'STATE_ERROR' ? 'failed' : 'ended'} at={one.endTime} />;
}

function List({ title, id, all, count, more, none, format, reasons }: ListProps) {
  return (
    <section aria-labelledby={id} class="card">
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        <span class="quiet">{all.length > 0 && count}</span>
      </div>
      {all.length === 0 && <p class="quiet">{none}</p>}
      <ul class="plain-list lines">
        {all.map((one) => (
          <li key={one.id}>
            <span class="who">
              <a href={paths.experiment(one.id)} title={one.name} aria-label={`${one.id} ${one.name}`}>
                <Name text={one.name} />
              </a>
              <span class="quiet id">#{one.id}</span>
            </span>
            <StateBadge state={one.state} />
            <span class="quiet about">
              <Moment one={one} />
              {one.bestTrialSearcherMetric != null && ` · best ${one.searcherMetric} ${format(one)}`}
              {one.state === 'STATE_ERROR' && (
                <>
                  {' · '}
                  <a href={`${paths.experiment(one.id)}?tab=log`}>log</a>
                </>
              )}
            </span>
            {reasons?.get(one.id) && <code class="why">{reasons.get(one.id)}</code>}
          </li>
        ))}
      </ul>
      {more && <a href={more}>All in the queue</a>}
    </section>
  );
}

const waits = (one: Experiment): boolean => one.state === 'STATE_QUEUED';

export function DashboardPage() {
  useTitle('Dashboard');
  const agents = useAgents();
  const unfinished = useUnfinished();
  const lately = useLately();
  const { all: running = [], isCut = false, isRunningCut = false } = unfinished.data ?? {};
  const unpaused = running.filter((one) => one.state !== 'STATE_PAUSED');
  const ended = lately.data?.all ?? [];
  const needing = useNeeding(user.value?.username ?? '');
  const reasons = useReasons(needing.data?.all ?? []);
  const error = agents.error ?? unfinished.error ?? lately.error ?? needing.error;
  if (!unfinished.data || !lately.data) {
    return error ? <ErrorNote error={error} retry={unfinished.reload} /> : <p role="status">Loading…</p>;
  }
  if (running.length === 0 && ended.length === 0) return <FirstExperiment />;
  // An experiment is in one list only. The three are reloaded at different times, so the lists with the end and the
  // pause of an experiment are newer than the one of those that run.
  const needed = needing.data?.all ?? [];
  const elsewhere = new Set([...needed, ...ended].map(({ id }) => id));
  const current = unpaused.filter(({ id }) => !elsewhere.has(id));
  const waiting = current.filter(waits);
  const format = metricFormat([...running, ...ended, ...needed]);
  const needs = (
    <List format={format} title="Needs attention" id="needs-title" all={needed} count={lengthText(needed.length, (needing.data?.total ?? 0) > needed.length)} reasons={reasons} none="No failed or paused experiments of yours this week." />
  );
  // A phone shows them first; beside the other lists there is no room.
  const needsFirst = onPhone() && needed.length > 0;
  return (
    <>
      <h1>Dashboard</h1>
      {needsFirst && <div class="dashboard">{needs}</div>}
      <ErrorNote error={error} retry={unfinished.reload} />
      {agents.data && (
        <div class="card cluster-line">
          <UseBar use={useOf(agents.data)} />
          <SlotStrip />
        </div>
      )}
      <RunningCards format={format} all={current.filter((one) => !waits(one))} isCut={isRunningCut} />
      <div class="dashboard">
        <div>
          {!needsFirst && needs}
          {waiting.length > 0 && (
            <List format={format} title="Waiting for slots" id="waiting-title" all={waiting} count={lengthText(waiting.length, isCut)} more={isCut ? `${paths.cluster}?tab=queue` : undefined} none="" />
          )}
        </div>
        <List format={format} title="Recently finished" id="lately-title" all={ended.filter(({ id }) => !needed.some((one) => one.id === id))} count="" none="Nothing has finished yet." />
      </div>
    </>
  );
}
