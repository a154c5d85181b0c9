// API calls that create, change and remove experiments.
import { change } from '../http';
import type { Experiment, JsonObject } from '../wire';

export interface Valid {
  config: JsonObject; // resolved
  warnings: string[];
}

// Validates a configuration without creating an experiment, with the code of `parentId`. An error carries
// each mistake with its line.
export const validate = (config: string, parentId: number, projectId: number): Promise<Valid> =>
  change('POST', '/api/v1/experiments', { config, parentId, projectId, validateOnly: true, configName: 'config' });

// Creates an experiment. Idempotent: a retry with the same request id returns the experiment already created.
export const create = async (config: string, parentId: number, projectId: number, requestId: string): Promise<Experiment> =>
  (
    await change<{ experiment: Experiment }>('POST', '/api/v1/experiments', {
      config,
      parentId,
      projectId,
      requestId,
      activate: true,
      configName: 'config',
    })
  ).experiment;

// Continues an ended experiment. With `validateOnly` it only validates.
export const goOn = (id: number, overrideConfig: string, validateOnly = false): Promise<unknown> =>
  change('POST', '/api/v1/experiments/continue', { id, overrideConfig, validateOnly });

export const retry = (id: number): Promise<unknown> => change('POST', `/api/v1/experiments/${id}/retry`);

export interface Details {
  name?: string;
  description?: string;
  notes?: string;
  labels?: string[];
}
export const patch = (id: number, details: Details): Promise<unknown> =>
  change('PATCH', `/api/v1/experiments/${id}`, details);

export const archive = (id: number, on: boolean): Promise<unknown> =>
  change('POST', `/api/v1/experiments/${id}/${on ? 'archive' : 'unarchive'}`);

export const remove = (id: number): Promise<unknown> => change('DELETE', `/api/v1/experiments/${id}`);

export const move = (id: number, destinationProjectId: number): Promise<unknown> =>
  change('POST', `/api/v1/experiments/${id}/move`, { destinationProjectId });

export const removeCheckpoint = (uuid: string): Promise<unknown> =>
  change('DELETE', '/api/v1/checkpoints', { checkpointUuids: [uuid] });

// A number of trials that are trained to the same length.
export interface Planned {
  count: number;
  unit?: { name?: string | null; value?: number | null; maxLength: boolean } | null;
}
export const previewSearch = async (config: JsonObject): Promise<Planned[]> =>
  (await change<{ summary?: { trials?: Planned[] } }>('POST', '/api/v1/preview-hp-search', { config, seed: 0 })).summary
    ?.trials ?? [];
