// API calls for users, roles, access tokens, and templates.
import { address, change, get } from '../http';
import type { User } from '../wire';

export interface Account extends User {
  active: boolean;
  lastAuthAt?: string | null;
}

export const users = async (signal?: AbortSignal): Promise<Account[]> =>
  (await get<{ users: Account[] }>(address('/api/v1/users', { limit: -1 }), signal)).users;

export const makeUser = (user: Partial<Account>, password: string): Promise<unknown> =>
  change('POST', '/api/v1/users', { user, password });
export const patchUser = (
  id: number,
  to: { displayName?: string; admin?: boolean; active?: boolean; password?: string },
): Promise<unknown> => change('PATCH', `/api/v1/users/${id}`, to);

export interface Role {
  roleId: number;
  name: string;
}
export interface Assignment {
  userId?: number; // this or groupId
  groupId?: number;
  role: Role;
  workspaceId: number | undefined; // undefined: all workspaces
}
interface Held {
  userId?: number;
  groupId?: number;
  roleAssignment?: { scopeWorkspaceId?: number | null; scopeCluster?: boolean } | null;
}
interface RoleAnswer {
  role?: Role | null;
  userRoleAssignments?: Held[];
  groupRoleAssignments?: Held[];
}

export const roles = async (): Promise<Role[]> =>
  (await change<{ roles: Role[] }>('POST', '/api/v1/roles/search', { limit: 100 })).roles;

const toAssignments = (answers: readonly RoleAnswer[]): Assignment[] =>
  answers.flatMap(({ role, userRoleAssignments = [], groupRoleAssignments = [] }) =>
    role
      ? [...userRoleAssignments, ...groupRoleAssignments].map(({ roleAssignment, ...holder }) => ({
          ...holder,
          role,
          workspaceId: roleAssignment?.scopeWorkspaceId ?? undefined,
        }))
      : [],
  );

// The role assignments that the user may see: all of them for an administrator of the cluster, else the own ones.
export async function assignments(): Promise<Assignment[]> {
  const roleIds = (await roles()).map((role) => role.roleId);
  return toAssignments((await change<{ roles: RoleAnswer[] }>('POST', '/api/v1/roles/search/by-ids', { roleIds })).roles);
}

export interface Members {
  users: { id: number; username: string; displayName?: string; roles: Assignment[] }[];
  groups: { name: string; users: string[]; roles: Assignment[] }[];
}

interface MembersAnswer {
  groups?: { groupId: number; name: string; users?: User[] }[];
  usersAssignedDirectly?: User[];
  assignments?: RoleAnswer[];
}

// The users and groups with a role in a workspace, or everywhere.
export async function membersOf(workspaceId: number, signal: AbortSignal): Promise<Members> {
  const answer = await get<MembersAnswer>(`/api/v1/roles/workspace/${workspaceId}`, signal);
  const all = toAssignments(answer.assignments ?? []);
  return {
    users: (answer.usersAssignedDirectly ?? []).map((one) => ({ ...one, roles: all.filter(({ userId }) => userId === one.id) })),
    groups: (answer.groups ?? []).map(({ groupId, name, users: own = [] }) => ({
      name,
      users: own.map(({ username }) => username),
      roles: all.filter((one) => one.groupId === groupId),
    })),
  };
}

export const setRole = (on: boolean, { userId, groupId, role, workspaceId }: Assignment): Promise<unknown> =>
  change('POST', `/api/v1/roles/${on ? 'add' : 'remove'}-assignments`, {
    [groupId === undefined ? 'userRoleAssignments' : 'groupRoleAssignments']: [
      {
        ...(groupId === undefined ? { userId } : { groupId }),
        roleAssignment: {
          role: { roleId: role.roleId },
          ...(workspaceId === undefined ? { scopeCluster: true } : { scopeWorkspaceId: workspaceId }),
        },
      },
    ],
  });

export interface Token {
  id: number;
  username: string;
  description: string;
  role: string; // "": the same as the user's
  revoked: boolean;
  createdAt?: string | null;
  expiry?: string | null;
  lastUsedAt?: string | null;
}
export const tokens = async (signal?: AbortSignal): Promise<Token[]> =>
  (await get<{ tokenInfo: Token[] }>(address('/api/v1/tokens', { limit: -1 }), signal)).tokenInfo;
// Creates a token. The token text is returned only once.
export const makeToken = async (description: string, lifespan: string, role: string): Promise<string> =>
  (await change<{ token: string }>('POST', '/api/v1/tokens', { description, lifespan, role })).token;
export const revokeToken = (id: number): Promise<unknown> =>
  change('PATCH', `/api/v1/tokens/${id}`, { setRevoked: true });

export interface Template {
  name: string;
  workspaceId: number;
  text: string; // YAML as written by a user
}
export const templates = async (signal?: AbortSignal): Promise<Template[]> =>
  (await get<{ templates: Template[] }>(address('/api/v1/templates', { limit: -1 }), signal)).templates;
const templateAt = (name: string): string => `/api/v1/templates/${encodeURIComponent(name)}`;
export const saveTemplate = (template: Template, isNew: boolean): Promise<unknown> =>
  change(isNew ? 'POST' : 'PUT', templateAt(template.name), {
    workspaceId: template.workspaceId,
    text: template.text,
    fileName: 'template',
  });
export const removeTemplate = (name: string): Promise<unknown> => change('DELETE', templateAt(name));
