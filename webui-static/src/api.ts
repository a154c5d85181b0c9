// API calls for sessions, experiments, trials and agents; the other calls are in calls/. Does not touch the
// page and keeps no state.
import { address, ApiError, get, readLines, request } from './http';
import type {
  Agent,
  Allocation,
  Checkpoint,
  Experiment,
  FoundExperiment,
  JsonValue,
  LogEntry,
  MasterInfo,
  MetricGroup,
  MetricSeries,
  Pagination,
  Trial,
  User,
} from './wire';

export { address, ApiError, errorMessage, readLines } from './http';

export const login = async (username: string, password: string): Promise<User> =>
  (await (await request('POST', '/api/v1/auth/login', { username, password })).json()).user;

export const logout = async (): Promise<void> => {
  await request('POST', '/api/v1/auth/logout', {});
};

export const currentUser = async (): Promise<User> => (await get<{ user: User }>('/api/v1/auth/user')).user;

export const masterInfo = (signal?: AbortSignal): Promise<MasterInfo> => get('/api/v1/master', signal);

export interface SearchQuery {
  text?: string;
  sort?: string; // "startTime=desc,hp.lr=asc"
  projectId?: number; // 0: all
  filter?: string; // JSON, see proto/det/v1/search.proto
}
interface SearchAnswer {
  experiments: FoundExperiment[];
  pagination: Pagination;
}

const search = (query: SearchQuery, offset: number, limit: number, signal?: AbortSignal): Promise<Response> =>
  request('POST', '/api/v1/experiments-search', { ...query, offset, limit }, signal);

export const searchExperiments = async (
  query: SearchQuery,
  offset: number,
  limit: number,
  signal?: AbortSignal,
): Promise<SearchAnswer> => (await search(query, offset, limit, signal)).json();

// As searchExperiments(), with the number of the last event that the answer contains.
export async function searchWithEvent(query: SearchQuery, limit: number): Promise<{ answer: SearchAnswer; event: number }> {
  const response = await search(query, 0, limit);
  return { answer: await response.json(), event: Number(response.headers.get('Det-Last-Event')) };
}

export type Condition =
  | { kind: 'field'; columnName: string; operator: string; value?: JsonValue }
  | { kind: 'group'; conjunction: 'and' | 'or'; children: Condition[] };
export const where = (columnName: string, operator: string, value?: string | number | number[]): Condition =>
  value === undefined ? { kind: 'field', columnName, operator } : { kind: 'field', columnName, operator, value };

export interface Experiments {
  all: Experiment[];
  total: number; // also those beyond the limit
}

// The first experiments that fulfill all conditions.
export const experimentsBy = async (
  children: Condition[],
  sort: string,
  limit: number,
  signal?: AbortSignal,
): Promise<Experiments> => {
  const filter = JSON.stringify({ filterGroup: { kind: 'group', conjunction: 'and', children } });
  const { experiments, pagination } = await searchExperiments({ filter, sort }, 0, limit, signal);
  return { all: experiments.map((one) => one.experiment), total: pagination.total };
};

export const experiment = async (id: number, signal?: AbortSignal): Promise<Experiment> => {
  const answer = await get<{ experiment: Experiment; config: Experiment['config'] }>(
    `/api/v1/experiments/${id}`,
    signal,
  );
  return { ...answer.experiment, config: answer.experiment.config ?? answer.config ?? null };
};

export const trials = async (experimentId: number, signal?: AbortSignal): Promise<Trial[]> =>
  (
    await get<{ trials: Trial[] }>(
      address(`/api/v1/experiments/${experimentId}/trials`, { limit: -1 }),
      signal,
    )
  ).trials;

// The id of an experiment's first trial; undefined before it has one.
export const firstTrial = async (experimentId: number, signal?: AbortSignal): Promise<number | undefined> =>
  (await get<{ trials: Trial[] }>(address(`/api/v1/experiments/${experimentId}/trials`, { limit: 1 }), signal)).trials[0]?.id;

export type Action = 'activate' | 'pause' | 'cancel' | 'kill';

export const act = async (experimentId: number, action: Action): Promise<void> => {
  await request('POST', `/api/v1/experiments/${experimentId}/${action}`, {});
};

export const trial = async (id: number, signal?: AbortSignal): Promise<Trial> =>
  (await get<{ trial: Trial }>(`/api/v1/trials/${id}`, signal)).trial;

export const killTrial = async (id: number): Promise<void> => {
  await request('POST', `/api/v1/trials/${id}/kill`, {});
};

export const allocations = async (trialId: number, signal?: AbortSignal): Promise<Allocation[]> =>
  (await get<{ allocations: Allocation[] }>(`/api/v1/trials/${trialId}/allocations`, signal)).allocations;

export const checkpoints = async (trialId: number, signal?: AbortSignal): Promise<Checkpoint[]> =>
  (
    await get<{ checkpoints: Checkpoint[] }>(
      address(`/api/v1/trials/${trialId}/checkpoints`, { limit: -1, orderBy: 'ORDER_BY_DESC' }),
      signal,
    )
  ).checkpoints;

// Checkpoints in order of the searcher metric, best first.
export const experimentCheckpoints = async (
  experimentId: number,
  smallerIsBetter: boolean,
  limit: number,
  signal?: AbortSignal,
): Promise<Checkpoint[]> =>
  (
    await get<{ checkpoints: Checkpoint[] }>(
      address(`/api/v1/experiments/${experimentId}/checkpoints`, {
        limit,
        sortByAttr: 'SORT_BY_SEARCHER_METRIC',
        orderBy: smallerIsBetter ? 'ORDER_BY_ASC' : 'ORDER_BY_DESC',
        states: ['STATE_COMPLETED'],
      }),
      signal,
    )
  ).checkpoints;

export const agents = async (signal?: AbortSignal): Promise<Agent[]> =>
  (await get<{ agents: Agent[] }>('/api/v1/agents', signal)).agents;

// The submitted context: a tar.gz in base64.
export const modelDefinition = async (experimentId: number, signal?: AbortSignal): Promise<string> =>
  (await get<{ b64Tgz: string }>(`/api/v1/experiments/${experimentId}/model_def`, signal)).b64Tgz;

interface SeriesQuery {
  // Approximate number of points per series. Downsampling keeps the minimum and maximum of each interval.
  points: number;
  from?: number; // batches
  to?: number;
  group?: string; // default: all groups
}
export interface TrialSeries {
  trial: Trial;
  metrics: MetricGroup[];
}

// Trials per request; several requests run concurrently.
const TRIALS_AT_ONCE = 16;

// Metrics of any number of trials, in the order of `trialIds`.
export const series = async (
  trialIds: readonly number[],
  query: SeriesQuery,
  signal?: AbortSignal,
): Promise<TrialSeries[]> => {
  const parts: (readonly number[])[] = [];
  for (let at = 0; at < trialIds.length; at += TRIALS_AT_ONCE)
    parts.push(trialIds.slice(at, at + TRIALS_AT_ONCE));
  const answers = await Promise.all(
    parts.map((ids) =>
      get<{ trials: TrialSeries[] }>(
        address('/api/v1/trials/time-series', {
          trialIds: ids,
          maxDatapoints: query.points,
          ...(query.from === undefined ? {} : { startBatches: query.from }),
          ...(query.to === undefined ? {} : { endBatches: query.to }),
          ...(query.group === undefined ? {} : { group: query.group }),
        }),
        signal,
      ),
    ),
  );
  return answers.flatMap((answer) => answer.trials);
};

// Trials per request of columns(). The first request of many trials is small, so that it is answered early.
const MAX_COLUMNS = 50;
const FIRST_COLUMNS = 10;

// Metrics as columns, for charts. `arrived` gets the series of each request before the last one is answered.
export const columns = async (
  trialIds: readonly number[],
  query: SeriesQuery,
  signal?: AbortSignal,
  arrived?: (part: MetricSeries[]) => void,
): Promise<MetricSeries[]> => {
  const first = trialIds.length > MAX_COLUMNS ? FIRST_COLUMNS : trialIds.length;
  const parts: (readonly number[])[] = first > 0 ? [trialIds.slice(0, first)] : [];
  for (let at = first; at < trialIds.length; at += MAX_COLUMNS) parts.push(trialIds.slice(at, at + MAX_COLUMNS));
  const load = async (ids: readonly number[]): Promise<MetricSeries[]> => {
    const { series = [] } = await get<{ series?: MetricSeries[] }>(
      address('/api/v1/trials/metric-series', {
        trialIds: ids,
        maxDatapoints: query.points,
        ...(query.from === undefined ? {} : { startBatches: query.from }),
        ...(query.to === undefined ? {} : { endBatches: query.to }),
        ...(query.group === undefined ? {} : { group: query.group }),
      }),
      signal,
    );
    if (++answered < parts.length) arrived?.(series);
    return series;
  };
  let answered = 0;
  return (await Promise.all(parts.map(load))).flat();
};

async function logEntries(url: string, signal?: AbortSignal): Promise<LogEntry[]> {
  const response = await request('GET', url, undefined, signal);
  const entries: LogEntry[] = [];
  if (!response.body) return entries;
  for await (const line of readLines(response.body)) {
    if (line === '') continue;
    const message = JSON.parse(line);
    if (message.error)
      throw new ApiError(message.error.httpCode ?? 500, message.error.message ?? 'the log broke off');
    entries.push(message.result);
  }
  return entries;
}

export interface LogQuery {
  levels?: readonly string[]; // "LOG_LEVEL_ERROR" …
  rankIds?: readonly number[];
  searchText?: string;
  enableRegex?: boolean;
  timestampAfter?: string; // RFC 3339
  timestampBefore?: string;
}

// The newest `limit` lines that match the query, oldest first.
export const logTail = async (
  of: string, // "trials/7", "tasks/ID"
  limit: number,
  query: LogQuery,
  signal?: AbortSignal,
): Promise<LogEntry[]> =>
  (
    await logEntries(
      address(`/api/v1/${of}/logs`, { limit, orderBy: 'ORDER_BY_DESC', ...query }),
      signal,
    )
  ).reverse();

// At most `limit` lines after the entry `afterId`, in order.
export const logAfter = (
  of: string,
  afterId: string,
  limit: number,
  query: LogQuery,
  signal?: AbortSignal,
): Promise<LogEntry[]> =>
  logEntries(
    address(`/api/v1/${of}/logs`, { afterId, limit, orderBy: 'ORDER_BY_ASC', ...query }),
    signal,
  );
