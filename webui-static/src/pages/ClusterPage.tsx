// Cluster page: slots, queues, usage, the master's log, joining agents.
import * as api from '../api';
import { useQuery, useTitle } from '../address';
import { AgentCard, type TrialNames } from '../cluster/Agents';
import { Join } from '../cluster/Join';
import { MasterLog } from '../cluster/MasterLog';
import { Pilots } from '../cluster/Pilots';
import { Queue } from '../cluster/Queue';
import { Usage } from '../cluster/Usage';
import { UseBar, useAgents, useOf, useUnfinished } from '../cluster/use';
import { useNow } from '../components/clock';
import { Empty } from '../components/Empty';
import { ErrorNote } from '../components/notes';
import { currentTab, Tabs } from '../components/Tabs';
import { useLive } from '../live';
import type { Agent } from '../wire';

const TABS = ['Agents', 'Queue', 'Usage', 'Log'] as const;

// Experiments of trials. They never change.
const experimentOf = new Map<number, number>();
const MAX_NAMED = 64;

// Names of the experiments whose trials hold slots, by trial.
function useTrialNames(agents: readonly Agent[]): TrialNames {
  const slots = agents.flatMap((agent) => Object.values(agent.slots));
  const trials = [...new Set(slots.map((slot) => slot.container?.trialId ?? 0))].filter((id) => id > 0).slice(0, MAX_NAMED);
  const unfinished = useUnfinished();
  useLive(
    `experiments of ${trials.join()}`,
    async (signal) => {
      const unknown = trials.filter((id) => !experimentOf.has(id));
      for (const { id, experimentId } of await Promise.all(unknown.map((id) => api.trial(id, signal)))) experimentOf.set(id, experimentId);
      return trials.length;
    },
    () => false,
  );
  const names = new Map((unfinished.data?.all ?? []).map(({ id, name }) => [id, name]));
  return new Map(
    trials.flatMap((id): [number, string][] => {
      const name = names.get(experimentOf.get(id) ?? 0);
      return name ? [[id, name]] : [];
    }),
  );
}

function Agents() {
  const agents = useAgents();
  const now = useNow(true);
  const names = useTrialNames(agents.data ?? []);
  const list = [...(agents.data ?? [])].sort((a, b) => a.id.localeCompare(b.id));
  return (
    <>
      <ErrorNote error={agents.error} retry={agents.reload} />
      {agents.data && list.length > 0 && <UseBar use={useOf(list)} />}
      {agents.data && list.length === 0 && (
        <Empty icon="cluster" title="No agent yet">
          Experiments wait until one joins.
        </Empty>
      )}
      <Pilots now={now} />
      {list.map((agent) => (
        <AgentCard key={agent.id} agent={agent} now={now} names={names} alone={list.length === 1} />
      ))}
      {agents.data && <Join open={list.length === 0} />}
    </>
  );
}

export function ClusterPage() {
  useTitle('Cluster');
  const { query } = useQuery();
  const tab = currentTab(TABS, query.tab);
  return (
    <>
      <h1>Cluster</h1>
      <Tabs names={TABS} current={tab} />
      {tab === 'Agents' && <Agents />}
      {tab === 'Queue' && <Queue />}
      {tab === 'Usage' && <Usage />}
      {tab === 'Log' && <MasterLog />}
    </>
  );
}
