// API calls of the model registry: named models with checkpoints as versions.
import { address, change, get } from '../http';
import type { Checkpoint, JsonObject } from '../wire';

export interface Model {
  id: number;
  name: string;
  description: string;
  notes: string; // Markdown
  labels: string[];
  metadata?: JsonObject | null;
  username: string;
  workspaceId: number;
  archived: boolean;
  numVersions: number;
  creationTime?: string | null;
  lastUpdatedTime?: string | null;
}
export interface ModelVersion {
  version: number;
  name: string;
  comment: string;
  notes: string;
  labels: string[];
  metadata?: JsonObject | null;
  username: string;
  creationTime?: string | null;
  checkpoint?: Checkpoint | null;
}

const at = (model: string): string => `/api/v1/models/${encodeURIComponent(model)}`;

export const models = async (archived: boolean, signal?: AbortSignal): Promise<Model[]> =>
  (await get<{ models: Model[] }>(address('/api/v1/models', { limit: -1, ...(archived ? {} : { archived: false }) }), signal))
    .models;
// At most `limit` models with a text in their names.
export const modelsNamed = async (name: string, limit: number, signal?: AbortSignal): Promise<Model[]> =>
  (await get<{ models: Model[] }>(address('/api/v1/models', { name, limit, archived: false }), signal)).models;
export const model = async (name: string, signal?: AbortSignal): Promise<Model> =>
  (await get<{ model: Model }>(at(name), signal)).model;
export const versions = async (name: string, signal?: AbortSignal): Promise<ModelVersion[]> =>
  (await get<{ modelVersions: ModelVersion[] }>(address(`${at(name)}/versions`, { limit: -1 }), signal)).modelVersions;

export const makeModel = async (name: string, description: string, workspaceId: number): Promise<Model> =>
  (await change<{ model: Model }>('POST', '/api/v1/models', { name, description, workspaceId })).model;
export const patchModel = (
  name: string,
  to: { name?: string; description?: string; notes?: string; labels?: string[] },
): Promise<unknown> => change('PATCH', at(name), to);
export const archiveModel = (name: string, on: boolean): Promise<unknown> =>
  change('POST', `${at(name)}/${on ? 'archive' : 'unarchive'}`);
export const removeModel = (name: string): Promise<unknown> => change('DELETE', at(name));

export const register = (model: string, checkpointUuid: string, name: string, comment: string): Promise<unknown> =>
  change('POST', `${at(model)}/versions`, { checkpointUuid, name, comment });
export const patchVersion = (
  model: string,
  version: number,
  to: { name?: string; comment?: string; notes?: string },
): Promise<unknown> => change('PATCH', `${at(model)}/versions/${version}`, to);
export const removeVersion = (model: string, version: number): Promise<unknown> =>
  change('DELETE', `${at(model)}/versions/${version}`);
