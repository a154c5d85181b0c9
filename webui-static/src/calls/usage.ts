// API calls for slot usage and the master's log.
import { address, ApiError, get, readLines, request } from '../http';

// One allocation, clipped to the requested range.
export interface Held {
  kind: string; // "training", "command"
  startTime: string;
  endTime?: string | null; // absent while running
  experimentId: number; // 0 for a command
  username: string;
  labels: string[];
  seconds: number; // within the range
  slots: number;
  resourcePool: string;
}
// Slots of an agent, for the time it was connected.
export interface Capacity {
  agentId: string;
  resourcePool: string;
  slots: number;
  startTime: string;
  endTime?: string | null; // absent while connected
}
interface HeldAndThere {
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

// Slot-seconds of one day or month in UTC.
export interface UsedPeriod {
  periodStart: string; // "2026-01-31" for a day, "2026-01" for a month
  seconds: number;
  byUsername: Record<string, number>;
  byExperimentLabel: Record<string, number>;
  byResourcePool: Record<string, number>;
  byExperimentId: Record<string, number>;
  capacityByResourcePool: Record<string, number>; // slot-seconds that were available
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

// The newest `tail` lines of the master's log, then new lines as they are written, until the master ends.
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
