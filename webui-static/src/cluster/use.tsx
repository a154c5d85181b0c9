// Agents and unfinished experiments, and the slots in use, for the cluster page and the dashboard.
import * as api from '../api';
import { jobs } from '../calls/cluster';
import { counted, percent } from '../format';
import { withEvent } from '../events';
import { useLive } from '../live';
import type { Agent, Experiment } from '../wire';

interface Use {
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
    (change) => change === 'everything' || change.kind === 'agent' || (change.kind === 'trial' && !change.sameState),
    500,
  );

interface Unfinished {
  all: Experiment[];
  isCut: boolean; // there are more, which wait or are paused
  isRunningCut: boolean; // some of the others may run
}

// Experiments and jobs of one request.
const MAX_UNFINISHED = 200;

// The newest experiments that have not ended, then older ones that run.
export async function unfinished(signal?: AbortSignal): Promise<Unfinished> {
  const open = api.where('endTime', 'isEmpty');
  const { all, total } = await api.experimentsBy([open], '', MAX_UNFINISHED, signal);
  if (total <= all.length) return { all, isCut: false, isRunningCut: false };
  const scheduled = await jobs(signal, { states: 'STATE_SCHEDULED', limit: MAX_UNFINISHED });
  const known = new Set(all.map(({ id }) => id));
  const missing = scheduled.flatMap(({ type, entityId }) => (type === 'TYPE_EXPERIMENT' && !known.has(Number(entityId)) ? [Number(entityId)] : []));
  const older = missing.length > 0 ? (await api.experimentsBy([open, api.where('id', '=', missing)], '', missing.length, signal)).all : [];
  return { all: [...all, ...older], isCut: total > all.length + older.length, isRunningCut: scheduled.length === MAX_UNFINISHED };
}

export const useUnfinished = () =>
  useLive(
    'unfinished',
    unfinished,
    (change) => change === 'everything' || change.kind === 'experiment' || change.kind === 'trial',
    2000,
    (found, event) => ({ ...found, all: found.all.map((experiment) => withEvent(experiment, event)) }),
  );

export function UseBar({ use }: { use: Use }) {
  return (
    <div class="use">
      <progress
        max={Math.max(1, use.slots)}
        value={use.held}
        aria-label={`${use.held} of ${use.slots} slots in use`}
      />
      <span>
        {use.held} of {use.slots} slots in use
        {use.slots > 0 && ` (${percent(use.held / use.slots)})`}
      </span>
      <span class="quiet">
        {counted(use.agents, 'agent')}
        {use.away > 0 && `, ${use.away} away`}
      </span>
    </div>
  );
}
