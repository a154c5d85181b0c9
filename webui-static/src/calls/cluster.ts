// API calls for agents and the job queues of the pools.
import { address, change, get, type Query } from '../http';

export interface Job {
  jobId: string;
  type: string; // "TYPE_EXPERIMENT" …
  entityId: string; // experiment number or command id
  name: string;
  username: string;
  resourcePool: string;
  priority: number; // 1..99, 1 is highest
  weight: number;
  maxSlots: number; // 0: no limit
  requestedSlots: number;
  allocatedSlots: number;
  isPreemptible: boolean;
  progress: number;
  submissionTime?: string | null;
  summary: { state: string; jobsAhead: number };
}

// Jobs in queue order, pool by pool.
export const jobs = async (signal?: AbortSignal, query: Query = {}): Promise<Job[]> =>
  (await get<{ jobs: Job[] }>(address('/api/v1/job-queues', query), signal)).jobs;

export type JobChange = { jobId: string } & (
  | { aheadOf: string }
  | { behindOf: string }
  | { priority: number }
  | { weight: number }
  | { maxSlots: number }
  | { resourcePool: string }
);
export const updateJobs = (updates: JobChange[]): Promise<unknown> => change('POST', '/api/v1/job-queues', { updates });

// Names of the resource pools.
export const pools = async (signal?: AbortSignal): Promise<string[]> =>
  ((await get<{ resourcePools?: { name: string }[] }>('/api/v1/resource-pools', signal)).resourcePools ?? []).map(({ name }) => name);

export interface Suggestion {
  what: string; // "SLOTS", "SPREAD", "MAX_SLOTS", "AGENT", "ENDS", "PRIORITY"
  value: number;
  agentId: string;
  trialId: number;
  preempts: number[];
}
interface Explanation {
  trialId: number;
  experimentId: number;
  reason: string;
  text: string; // the whole explanation, one fact a line
  suggestions: Suggestion[];
}
export const explain = async (of: 'experiments' | 'commands', id: string, signal?: AbortSignal): Promise<Explanation | undefined> =>
  (await get<{ explanation?: Explanation | null }>(`/api/v1/${of}/${encodeURIComponent(id)}/explain`, signal)).explanation ??
  undefined;

// Enables or disables an agent. With `drain` running jobs may finish; otherwise
// they are preempted and requeued.
export const setAgent = (id: string, on: boolean, drain = false): Promise<unknown> =>
  change('POST', `/api/v1/agents/${encodeURIComponent(id)}/${on ? 'enable' : 'disable'}`, on ? {} : { drain });
export const setSlot = (agent: string, slot: string, on: boolean, drain = false): Promise<unknown> =>
  change(
    'POST',
    `/api/v1/agents/${encodeURIComponent(agent)}/slots/${encodeURIComponent(slot)}/${on ? 'enable' : 'disable'}`,
    on ? {} : { drain },
  );


// Creates a token for `uses` agents to join `pool`, or the pool that they name if it is "". The
// token text is returned only once.
export const makeJoinToken = async (pool: string, uses: number, lifespan: string): Promise<string> =>
  (await change<{ token: string }>('POST', '/api/v1/join-tokens', { pool, uses, lifespan })).token;

// Jobs of Slurm or Kubernetes that run the agents of a pool.
export interface Pilot {
  name: string;
  resourcePool: string;
  state: string; // "SUBMITTED", "PENDING", "RUNNING" or "CANCELING"
  job: string; // id in the engine; "" before it has confirmed the job
  reason: string;
  nodes: number;
  agents: number; // that are connected
  allocations: number;
  slots?: number | null; // of its one allocation; absent: it takes any work
  submittedTime?: string | null;
  endTime?: string | null;
}
export interface PilotPool {
  name: string;
  engine: string;
  maxPilots: number;
  perAllocation: boolean;
  problem: string; // why the pool gets no pilots
}
export interface Pilots {
  pilots: Pilot[];
  pools: PilotPool[];
}
export const pilots = (signal?: AbortSignal): Promise<Pilots> => get<Pilots>('/api/v1/pilots', signal);
