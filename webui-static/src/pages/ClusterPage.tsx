// Owns the view of the cluster: who holds which slot, what waits, how an agent joins.
import * as api from '../api';
import { paths, useTitle } from '../address';
import { useNow } from '../components/clock';
import { ErrorNote, StateBadge } from '../components/notes';
import { dateTime, percent, span } from '../format';
import { useLive } from '../live';
import type { Agent, Experiment, Slot } from '../wire';

export interface Use {
  slots: number;
  held: number;
  agents: number;
  away: number;
}

export function useOf(agents: readonly Agent[]): Use {
  const slots = agents.filter((agent) => agent.connected).flatMap((agent) => Object.values(agent.slots));
  return {
    slots: slots.length,
    held: slots.filter((slot) => slot.container).length,
    agents: agents.length,
    away: agents.filter((agent) => !agent.connected).length,
  };
}

export const useAgents = () =>
  useLive(
    'agents',
    (signal) => api.agents(signal),
    (change) => change === 'everything' || change.kind === 'agent' || change.kind === 'trial',
    500,
  );

// Experiments that have not ended, newest first.
export const useUnfinished = () =>
  useLive(
    'unfinished',
    async (signal): Promise<Experiment[]> => {
      const filter = {
        filterGroup: {
          kind: 'group',
          conjunction: 'and',
          children: [{ kind: 'field', columnName: 'endTime', operator: 'isEmpty' }],
        },
      };
      const answer = await api.searchExperiments({ filter: JSON.stringify(filter) }, 0, 200, signal);
      return answer.experiments.map((one) => one.experiment);
    },
    (change) => change === 'everything' || change.kind === 'experiment' || change.kind === 'trial',
    500,
  );

function SlotBox({ slot }: { slot: Slot }) {
  const holder = slot.container;
  const device = slot.device?.brand || slot.device?.type?.replace('TYPE_', '') || 'slot';
  const state = !slot.enabled ? 'off' : holder ? 'held' : 'free';
  const text = holder ? `trial ${holder.trialId}` : slot.enabled ? 'free' : 'disabled';
  const inner = (
    <>
      <span class="slot-number">{slot.id}</span>
      <span>{text}</span>
      <span class="quiet">{device}</span>
    </>
  );
  return holder && holder.trialId > 0 ? (
    <a class={`slot slot-${state}`} href={paths.trial(holder.trialId)}>
      {inner}
    </a>
  ) : (
    <div class={`slot slot-${state}`}>{inner}</div>
  );
}

function AgentCard({ agent, now }: { agent: Agent; now: number }) {
  const slots = Object.values(agent.slots).sort((a, b) => Number(a.id) - Number(b.id));
  const held = slots.filter((slot) => slot.container).length;
  const state = !agent.connected ? 'away' : agent.draining ? 'draining' : agent.enabled ? '' : 'disabled';
  return (
    <article class="card" aria-label={`Agent ${agent.id}`}>
      <div class="section-head">
        <h3>{agent.id}</h3>
        {state !== '' && <span class="state state-waiting">{state}</span>}
        <span class="quiet">
          {held} of {slots.length} slots held · up {span(agent.registeredTime, undefined, now)} ·{' '}
          {agent.resourcePools.join(', ') || 'default'} · {agent.version}
        </span>
      </div>
      <div class="slots">
        {slots.map((slot) => (
          <SlotBox key={slot.id} slot={slot} />
        ))}
      </div>
    </article>
  );
}

function Join() {
  const command = `det-agent --master ${location.host}`;
  return (
    <section aria-labelledby="join-title">
      <h2 id="join-title">Add an agent</h2>
      <p>On the machine that has the slots:</p>
      <div class="copy">
        <pre tabIndex={0}>
          <code>{command}</code>
        </pre>
        <button type="button" onClick={() => void navigator.clipboard?.writeText(command)}>
          Copy
        </button>
      </div>
    </section>
  );
}

function Queue({ waiting, now }: { waiting: Experiment[]; now: number }) {
  if (waiting.length === 0) return <p class="quiet">Nothing waits for slots.</p>;
  return (
    <div class="table-frame" role="region" aria-label="Queue" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              ID
            </th>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col">User</th>
            <th scope="col">Pool</th>
            <th scope="col">Submitted</th>
            <th scope="col" class="number">
              For
            </th>
          </tr>
        </thead>
        <tbody>
          {waiting.map((one) => (
            <tr key={one.id}>
              <td class="number">{one.id}</td>
              <th scope="row">
                <a href={paths.experiment(one.id)}>{one.name || `Experiment ${one.id}`}</a>
              </th>
              <td>
                <StateBadge state={one.state} />
              </td>
              <td>{one.username}</td>
              <td>{one.resourcePool || 'default'}</td>
              <td>{dateTime(one.startTime)}</td>
              <td class="number">{span(one.startTime, undefined, now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function UseBar({ use }: { use: Use }) {
  return (
    <div class="use">
      <progress
        max={Math.max(1, use.slots)}
        value={use.held}
        aria-label={`${use.held} of ${use.slots} slots held`}
      />
      <span>
        {use.held} of {use.slots} slots held
        {use.slots > 0 && ` (${percent(use.held / use.slots)})`}
      </span>
      <span class="quiet">
        {use.agents} {use.agents === 1 ? 'agent' : 'agents'}
        {use.away > 0 && `, ${use.away} away`}
      </span>
    </div>
  );
}

export function ClusterPage() {
  useTitle('Cluster');
  const agents = useAgents();
  const unfinished = useUnfinished();
  const now = useNow(true);
  const list = [...(agents.data ?? [])].sort((a, b) => a.id.localeCompare(b.id));
  const waiting = (unfinished.data ?? []).filter((one) => one.state === 'STATE_QUEUED').reverse();
  return (
    <>
      <div class="section-head">
        <h1>Cluster</h1>
      </div>
      <ErrorNote error={agents.error ?? unfinished.error} retry={agents.reload} />
      {agents.data && <UseBar use={useOf(list)} />}
      <section aria-labelledby="agents-title">
        <h2 id="agents-title">Agents</h2>
        {agents.data && list.length === 0 && <p class="quiet">No agent yet: experiments wait until one joins.</p>}
        {list.map((agent) => (
          <AgentCard key={agent.id} agent={agent} now={now} />
        ))}
      </section>
      <section aria-labelledby="queue-title">
        <div class="section-head">
          <h2 id="queue-title">Waiting for slots</h2>
          <span class="quiet">longest first</span>
        </div>
        <Queue waiting={waiting} now={now} />
      </section>
      <Join />
    </>
  );
}
