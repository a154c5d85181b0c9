// Moves of a job within its queue. Pure.
import type { Job, JobChange } from '../calls/cluster';

// The change that moves the job at `from` to the position of `to`; undefined for a move outside its pool.
export function movement(jobs: readonly Job[], from: number, to: number): JobChange | undefined {
  const [moved, anchor] = [jobs[from], jobs[to]];
  if (!moved || !anchor || from === to || moved.resourcePool !== anchor.resourcePool) return undefined;
  return to < from
    ? { jobId: moved.jobId, aheadOf: anchor.jobId }
    : { jobId: moved.jobId, behindOf: anchor.jobId };
}

// The expected list after a move, shown until the master confirms it.
export function moved<T>(all: readonly T[], from: number, to: number): T[] {
  const out = [...all];
  out.splice(to, 0, ...out.splice(from, 1));
  return out;
}

// The index of a job that waits; -1 once it runs or is gone.
export const waitingAt = (jobs: readonly Job[], jobId: string | undefined): number =>
  jobs.findIndex((job) => job.jobId === jobId && job.summary.state === 'STATE_QUEUED');

export function byPool(jobs: readonly Job[]): [string, Job[]][] {
  const pools = new Map<string, Job[]>();
  for (const job of jobs) pools.set(job.resourcePool, [...(pools.get(job.resourcePool) ?? []), job]);
  return [...pools].sort(([a], [b]) => a.localeCompare(b));
}
