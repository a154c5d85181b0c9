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
interface RoleAnswer {
  role?: Role | null;
  userRoleAssignments?: {
    userId: number;
    roleAssignment?: { scopeWorkspaceId?: number | null; scopeCluster?: boolean } | null;
  }[];
  groupRoleAssignments?: { groupId: number }[];
}

export const roles = async (): Promise<Role[]> =>
  (await change<{ roles: Role[] }>('POST', '/api/v1/roles/search', { limit: 100 })).roles;

// The role assignments that the user may see.
export async function assignments(): Promise<Assignment[]> {
  const roleIds = (await roles()).map((role) => role.roleId);
  const answer = await change<{ roles: RoleAnswer[] }>('POST', '/api/v1/roles/search/by-ids', { roleIds });
  return answer.roles.flatMap(({ role, userRoleAssignments = [] }) =>
    role
      ? userRoleAssignments.map(({ userId, roleAssignment }) => ({
          userId,
          role,
          workspaceId: roleAssignment?.scopeWorkspaceId ?? undefined,
        }))
      : [],
  );
}

export interface GroupRoles {
  name: string;
  users: string[];
  roles: Assignment[];
}

// The groups with a role in a workspace.
export async function groupsIn(workspaceId: number, signal: AbortSignal): Promise<GroupRoles[]> {
  const path = `/api/v1/roles/workspace/${workspaceId}`;
  const { groups = [], assignments = [] } = await get<{ groups?: { groupId: number; name: string; users?: { username: string }[] }[]; assignments?: RoleAnswer[] }>(path, signal);
  return groups.map(({ groupId, name, users: all = [] }) => ({
    name,
    users: all.map(({ username }) => username),
    roles: assignments.flatMap(({ role, groupRoleAssignments = [] }) => (role && groupRoleAssignments.some((one) => one.groupId === groupId) ? [{ groupId, role, workspaceId }] : [])),
  }));
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
