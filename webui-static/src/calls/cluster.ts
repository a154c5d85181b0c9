// Owns the calls about machines and the queues of their pools.
import { change, get } from '../http';

export interface Job {
  jobId: string;
  type: string; // "TYPE_EXPERIMENT" …
  entityId: string; // the experiment's number, the command's id
  name: string;
  userId: number;
  resourcePool: string;
  priority: number; // 1..99, 1 first
  weight: number;
  maxSlots: number; // 0: no limit
  requestedSlots: number;
  allocatedSlots: number;
  isPreemptible: boolean;
  progress: number;
  submissionTime?: string | null;
  summary: { state: string; jobsAhead: number };
}

// In the order of the queues, pool by pool.
export const jobs = async (signal?: AbortSignal): Promise<Job[]> =>
  (await get<{ jobs: Job[] }>('/api/v1/job-queues', signal)).jobs;

export type JobChange = { jobId: string } & (
  | { aheadOf: string }
  | { behindOf: string }
  | { priority: number }
  | { weight: number }
  | { maxSlots: number }
  | { resourcePool: string }
);
export const updateJobs = (updates: JobChange[]): Promise<unknown> => change('POST', '/api/v1/job-queues', { updates });

export interface Suggestion {
  what: string; // "SLOTS", "SPREAD", "MAX_SLOTS", "AGENT", "ENDS", "PRIORITY"
  value: number;
  agentId: string;
  trialId: number;
  preempts: number[];
}
export interface Explanation {
  trialId: number;
  experimentId: number;
  reason: string;
  text: string; // all of it for people: a line a fact
  suggestions: Suggestion[];
}
export const explain = async (of: 'experiments' | 'commands', id: string, signal?: AbortSignal): Promise<Explanation | undefined> =>
  (await get<{ explanation?: Explanation | null }>(`/api/v1/${of}/${encodeURIComponent(id)}/explain`, signal)).explanation ??
  undefined;

// With `drain` what runs there may finish; without, it leaves and waits again.
export const setAgent = (id: string, on: boolean, drain = false): Promise<unknown> =>
  change('POST', `/api/v1/agents/${encodeURIComponent(id)}/${on ? 'enable' : 'disable'}`, on ? {} : { drain });
export const setSlot = (agent: string, slot: string, on: boolean, drain = false): Promise<unknown> =>
  change(
    'POST',
    `/api/v1/agents/${encodeURIComponent(agent)}/slots/${encodeURIComponent(slot)}/${on ? 'enable' : 'disable'}`,
    on ? {} : { drain },
  );


// Told this once. For so many agents, of this pool or of the one that they name.
export const makeJoinToken = async (pool: string, uses: number, lifespan: string): Promise<string> =>
  (await change<{ token: string }>('POST', '/api/v1/join-tokens', { pool, uses, lifespan })).token;
