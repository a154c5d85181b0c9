// Types of the public JSON API as far as the pages use them (proto/det/v1: camelCase, int64 as strings,
// default values present, unset messages absent). Types only.

type Maybe<T> = T | null | undefined;

export interface User {
  id: number;
  username: string;
  admin: boolean;
  displayName: string;
}

// A mistake in a submitted text.
export interface Problem {
  code: string;
  path: string; // "searcher.metric"
  message: string;
  file: string;
  line: number; // from 1; 0: unknown
  column: number;
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
  notes: string; // Markdown
  projectId: number;
  projectName: string;
  workspaceId: number;
  workspaceName: string;
  resourcePool: string;
  config?: Maybe<JsonObject>;
  originalConfig: string; // YAML as the user wrote it
  searcherType: string;
  searcherMetric: string;
  bestTrialId?: Maybe<number>;
  forkedFrom?: Maybe<number>;
  archived: boolean;
  unmanaged: boolean;
  jobId: string;
  duration?: Maybe<number>; // seconds
  modelDefinitionSize: number; // bytes
  bestTrialSearcherMetric?: Maybe<number | string>; // a string for NaN and the infinities
  checkpointCount: number;
  checkpointSize: string; // bytes
}

interface MetricsWorkload {
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
  run: number;
  wallClockTime: number; // seconds
  totalCheckpointSize: string; // bytes
  latestCheckpointUuid: string;
  buildTime?: Maybe<string>; // since when its code is built, in STATE_PULLING
  hparams?: Maybe<JsonObject>;
  metadata?: Maybe<JsonObject>; // notes of the trial's process or of users
  totalBatchesProcessed: number;
  taskId: string;
  bestValidation?: Maybe<MetricsWorkload>;
  latestValidation?: Maybe<MetricsWorkload>;
  searcherMetricValue?: Maybe<number | string>;
  checkpointCount: number;
  progress: number;
  exitReason: string;
  summaryMetrics?: Maybe<JsonObject>; // of a single trial: by group and metric its last, least and other values
}

export interface DataPoint {
  batches: number;
  values?: Maybe<JsonObject>;
  time?: Maybe<string>;
  epoch?: Maybe<number>;
}

// One group ("training", "validation", …) of one trial, in batch order.
export interface MetricGroup {
  group: string;
  data: DataPoint[];
}

// One metric of one group of one trial. Batches and milliseconds are differences to the previous
// point; the first point counts from batch 0 and firstTime. When downsampled, points are the
// minimum and maximum of each interval.
export interface MetricSeries {
  trialId: number;
  group: string;
  name: string;
  firstTime?: Maybe<string>;
  batches: number[];
  values: (number | string)[]; // "NaN", "Infinity", "-Infinity"
  milliseconds: number[];
}

export interface LogEntry {
  id: string;
  timestamp?: Maybe<string>;
  level: string; // "LOG_LEVEL_INFO" …
  rankId: number; // -1: no rank
  agentId: string;
  allocationId: string;
  log: string; // the line as written, without line end
}

export interface MasterInfo {
  version: string; // of the API
  release: string;
  clusterName: string; // "" if the cluster has no name
}

export interface FoundExperiment {
  experiment: Experiment;
  bestTrial?: Maybe<Trial>; // id, hyperparameters, best validation and searcher metric only
  bestTraining?: Maybe<JsonObject>; // last training metrics before the best validation
}

export interface Checkpoint {
  uuid: string;
  state: string;
  reportTime?: Maybe<string>;
  resources: Record<string, string>; // path → bytes
  metadata?: Maybe<JsonObject>;
  stepsCompleted: number;
  storagePath: string;
  training?: Maybe<{
    trialId?: Maybe<number>;
    experimentId?: Maybe<number>;
    searcherMetric?: Maybe<number | string>;
  }>;
}

// One run of a trial.
export interface Allocation {
  id: string;
  run: number;
  state: string;
  agentId: string;
  slots: number[];
  resourcePool: string;
  startTime?: Maybe<string>;
  endTime?: Maybe<string>;
  exitKind: string;
  exitCode?: Maybe<number>;
  exitMessage: string;
}

export interface Slot {
  id: string;
  device?: Maybe<{ brand: string; type: string }>;
  /** False for all slots of a disabled agent. */
  enabled: boolean;
  /** True for all slots of a draining agent, and for a disabled slot with work. */
  draining: boolean;
  container?: Maybe<{ id: string; trialId: number; taskId: string; state: string }>;
  /** Why the agent has taken the slot out of service; "" without a reason. */
  problem: string;
  reading?: Maybe<DeviceReading>;
}

/** State of a GPU. Values that it does not support are absent. */
export interface DeviceReading {
  utilization?: Maybe<number>; // 0 to 1
  memoryUsed?: Maybe<number>; // bytes
  memoryTotal?: Maybe<number>;
  temperature?: Maybe<number>; // °C
  power?: Maybe<number>; // W
  smClock?: Maybe<number>; // Hz
  slowdown: string; // why its clocks are reduced
}

export interface Agent {
  id: string;
  registeredTime?: Maybe<string>;
  slots: Record<string, Slot>;
  addresses: string[];
  enabled: boolean;
  draining: boolean;
  connected: boolean;
  release: string;
  /** Sandbox of tasks: "full", "partial" or "off"; "" for agents of older releases. */
  sandbox: string;
  sandboxMissing: string;
  problem: string;
  resourcePools: string[];
}
