// Agents and unfinished experiments, and the slots in use, for the cluster page and the dashboard.
import * as api from '../api';
import { counted, percent } from '../format';
import { withEvent } from '../events';
import { useLive } from '../live';
import type { Agent } from '../wire';

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

// Experiments that have not ended, newest first.
export const useUnfinished = () =>
  useLive(
    'unfinished',
    (signal) => api.experimentsBy([api.where('endTime', 'isEmpty')], '', 200, signal),
    (change) => change === 'everything' || change.kind === 'experiment' || change.kind === 'trial',
    2000,
    (all, event) => all.map((experiment) => withEvent(experiment, event)),
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
