// Owns what moving a job in its queue means for the master. Pure.
import type { Job, JobChange } from '../calls/cluster';

// The change that puts the job at `from` where the one at `to` stands; undefined when that is no move within a pool.
export function movement(jobs: readonly Job[], from: number, to: number): JobChange | undefined {
  const [moved, anchor] = [jobs[from], jobs[to]];
  if (!moved || !anchor || from === to || moved.resourcePool !== anchor.resourcePool) return undefined;
  return to < from
    ? { jobId: moved.jobId, aheadOf: anchor.jobId }
    : { jobId: moved.jobId, behindOf: anchor.jobId };
}

// The list as it will be, until the master has said so.
export function moved<T>(all: readonly T[], from: number, to: number): T[] {
  const out = [...all];
  out.splice(to, 0, ...out.splice(from, 1));
  return out;
}

export function byPool(jobs: readonly Job[]): [string, Job[]][] {
  const pools = new Map<string, Job[]>();
  for (const job of jobs) pools.set(job.resourcePool, [...(pools.get(job.resourcePool) ?? []), job]);
  return [...pools].sort(([a], [b]) => a.localeCompare(b));
}
