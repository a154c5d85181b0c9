// Owns the shapes of the public JSON API that the pages read (proto/det/v1: camelCase, int64 as strings,
// defaults present but for messages, which are absent when unset). Only fields that a page uses are listed.
// Must never hold behavior.

type Maybe<T> = T | null | undefined;

export interface User {
  id: number;
  username: string;
  admin: boolean;
  displayName: string;
}

export interface Pagination {
  offset: number;
  limit: number;
  startIndex: number;
  endIndex: number;
  total: number;
}

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

export interface Experiment {
  id: number;
  name: string;
  description: string;
  labels: string[];
  state: string; // "STATE_ACTIVE" …
  progress?: Maybe<number>; // 0..1
  startTime?: Maybe<string>; // RFC 3339
  endTime?: Maybe<string>;
  numTrials: number;
  trialIds: number[];
  username: string;
  resourcePool: string;
  config?: Maybe<JsonObject>;
  originalConfig: string; // YAML as the user wrote it
  searcherType: string;
  searcherMetric: string;
  bestTrialId?: Maybe<number>;
  bestTrialSearcherMetric?: Maybe<number | string>; // a string for NaN and the infinities
  checkpointCount: number;
  checkpointSize: string; // bytes
}

export interface MetricsWorkload {
  endTime?: Maybe<string>;
  metrics?: Maybe<{ avgMetrics: JsonObject | null }>;
  totalBatches: number;
}

export interface Trial {
  id: number;
  experimentId: number;
  state: string;
  startTime?: Maybe<string>;
  endTime?: Maybe<string>;
  restarts: number;
  hparams?: Maybe<JsonObject>;
  totalBatchesProcessed: number;
  taskId: string;
  bestValidation?: Maybe<MetricsWorkload>;
  latestValidation?: Maybe<MetricsWorkload>;
  searcherMetricValue?: Maybe<number | string>;
  checkpointCount: number;
  progress: number;
  exitReason: string;
}

export interface DataPoint {
  batches: number;
  values?: Maybe<JsonObject>;
}

// One group ("training", "validation", …) of one trial, in order of batches.
export interface MetricGroup {
  group: string;
  data: DataPoint[];
}

export interface LogEntry {
  id: string;
  timestamp?: Maybe<string>;
  level: string; // "LOG_LEVEL_INFO" …
  rankId: number;
  log: string; // the line without its end, as the process wrote it
}

export interface MasterInfo {
  version: string;
  clusterName: string;
}
