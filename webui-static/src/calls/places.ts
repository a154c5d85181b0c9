// API calls for workspaces and projects.
import { address, change, get } from '../http';

export interface Workspace {
  id: number;
  name: string;
  archived: boolean;
  immutable: boolean;
  username: string;
  numProjects: number;
  numExperiments: number;
}
export interface Project {
  id: number;
  name: string;
  description: string;
  workspaceId: number;
  workspaceName: string;
  archived: boolean;
  immutable: boolean;
  username: string;
  numExperiments: number;
  numActiveExperiments: number;
  lastExperimentStartedAt?: string | null;
}

export const workspaces = async (signal?: AbortSignal): Promise<Workspace[]> =>
  (await get<{ workspaces: Workspace[] }>(address('/api/v1/workspaces', { limit: -1 }), signal)).workspaces;

export const workspace = async (id: number, signal?: AbortSignal): Promise<Workspace> =>
  (await get<{ workspace: Workspace }>(`/api/v1/workspaces/${id}`, signal)).workspace;

export const projects = async (workspaceId: number, signal?: AbortSignal): Promise<Project[]> =>
  (await get<{ projects: Project[] }>(address(`/api/v1/workspaces/${workspaceId}/projects`, { limit: -1 }), signal))
    .projects;

export const project = async (id: number, signal?: AbortSignal): Promise<Project> =>
  (await get<{ project: Project }>(`/api/v1/projects/${id}`, signal)).project;

// The projects of all workspaces that accept new experiments.
export async function openProjects(signal?: AbortSignal): Promise<Project[]> {
  const places = (await workspaces(signal)).filter((one) => !one.archived);
  return (await Promise.all(places.map((one) => projects(one.id, signal)))).flat().filter((one) => !one.archived);
}

export const makeWorkspace = async (name: string): Promise<Workspace> =>
  (await change<{ workspace: Workspace }>('POST', '/api/v1/workspaces', { name })).workspace;
export const makeProject = async (workspaceId: number, name: string, description: string): Promise<Project> =>
  (await change<{ project: Project }>('POST', `/api/v1/workspaces/${workspaceId}/projects`, { name, description }))
    .project;

type Place = 'workspaces' | 'projects';
export const renamePlace = (place: Place, id: number, to: { name?: string; description?: string }): Promise<unknown> =>
  change('PATCH', `/api/v1/${place}/${id}`, to);
export const archivePlace = (place: Place, id: number, on: boolean): Promise<unknown> =>
  change('POST', `/api/v1/${place}/${id}/${on ? 'archive' : 'unarchive'}`);
export const removePlace = (place: Place, id: number): Promise<unknown> => change('DELETE', `/api/v1/${place}/${id}`);
