// Owns the calls about who held slots, and about what the master says of itself.
import { address, ApiError, get, readLines, request } from '../http';

// One allocation, cut to the range that was asked for.
export interface Held {
  kind: string; // "training", "command"
  startTime: string;
  endTime?: string | null; // absent while it runs
  experimentId: number; // 0 of a command
  username: string;
  labels: string[];
  seconds: number; // in the range
  slots: number;
  resourcePool: string;
}
// Slots that an agent brought, for as long as the master knew of it.
export interface Capacity {
  agentId: string;
  resourcePool: string;
  slots: number;
  startTime: string;
  endTime?: string | null; // absent while it is there
}
export interface HeldAndThere {
  resourceEntries: Held[];
  capacity: Capacity[];
}
export const held = (fromMs: number, toMs: number, signal?: AbortSignal): Promise<HeldAndThere> =>
  get<HeldAndThere>(
    address('/api/v1/resources/allocation/raw', {
      timestampAfter: new Date(fromMs).toISOString(),
      timestampBefore: new Date(toMs).toISOString(),
    }),
    signal,
  );

// Seconds times slots of one day or month, of UTC.
export interface UsedPeriod {
  periodStart: string; // "2026-01-31"; of a month "2026-01"
  seconds: number;
  byUsername: Record<string, number>;
  byExperimentLabel: Record<string, number>;
  byResourcePool: Record<string, number>;
  byExperimentId: Record<string, number>;
  capacityByResourcePool: Record<string, number>; // what there was to hold
}
export const used = async (
  firstDay: string,
  lastDay: string,
  period: 'DAILY' | 'MONTHLY',
  signal?: AbortSignal,
): Promise<UsedPeriod[]> =>
  (
    await get<{ resourceEntries: UsedPeriod[] }>(
      address('/api/v1/resources/allocation/aggregated', {
        startDate: firstDay,
        endDate: lastDay,
        period: `RESOURCE_ALLOCATION_AGGREGATION_PERIOD_${period}`,
      }),
      signal,
    )
  ).resourceEntries;

export interface MasterLine {
  id: number | string;
  message: string;
  timestamp?: string | null;
  level: string; // "LOG_LEVEL_INFO" …
}

// The newest `tail` lines of the master's own log, then each as it is written, until the master ends it.
export async function* masterLog(tail: number, signal: AbortSignal): AsyncGenerator<MasterLine> {
  const url = address('/api/v1/master/logs', { offset: -tail, follow: true });
  const response = await request('GET', url, undefined, signal);
  if (!response.body) return;
  for await (const line of readLines(response.body)) {
    if (line === '') continue;
    const { error, result } = JSON.parse(line);
    if (error) throw new ApiError(error.httpCode ?? 500, error.message ?? 'the log broke off');
    yield result.logEntry;
  }
}
