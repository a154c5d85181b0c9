// API calls for commands, which run once, with or without slots, and for notebooks, shells and TensorBoards,
// which are commands with a program that the cluster chooses.
import { address, change, get } from '../http';

export interface Command {
  id: string;
  description: string;
  state: string; // "STATE_RUNNING" …
  username: string;
  resourcePool: string;
  jobId: string;
  exitStatus: string; // readable text; "" until the command has ended
  exitCode?: number | null;
  startTime?: string | null;
  endTime?: string | null;
  slots: number;
  priority: number;
}

export const hasEnded = (one: Command): boolean => one.state === 'STATE_TERMINATED';

// The state to show: for an ended command, how it ended.
export const outcome = (one: Command): string =>
  !hasEnded(one) ? one.state : one.exitStatus.startsWith('killed') ? 'STATE_KILLED' : one.exitStatus.startsWith('success') ? 'STATE_COMPLETED' : 'STATE_ERROR';

const at = (id: string): string => `/api/v1/commands/${encodeURIComponent(id)}`;

export interface Task extends Command {
  kind: string; // as users read it
  serviceAddress?: string; // path of the pages of a notebook or TensorBoard
}
const KINDS = [
  { path: 'commands', kind: 'Command' },
  { path: 'notebooks', kind: 'Notebook' },
  { path: 'shells', kind: 'Shell' },
  { path: 'tensorboards', kind: 'TensorBoard' },
];
// All tasks, newest first.
export const tasks = async (signal?: AbortSignal): Promise<Task[]> => {
  const lists = await Promise.all(
    KINDS.map(async ({ path, kind }) => {
      const page = await get<Record<string, Command[]>>(address(`/api/v1/${path}`, { orderBy: 'ORDER_BY_DESC' }), signal);
      return (page[path] ?? []).map((one): Task => ({ ...one, kind }));
    }),
  );
  return lists.flat().sort((a, b) => (b.startTime ?? '').localeCompare(a.startTime ?? ''));
};
// A port that the command offers. A program behind a TCP port has no page.
interface ProxyPort {
  proxy_port: number;
  proxy_tcp?: boolean;
}
export interface CommandWithPorts extends Command {
  ports: ProxyPort[];
  line: string; // the command as it is typed; "" if its program is chosen by the cluster
}
interface CommandConfig {
  entrypoint?: string | string[];
  environment?: { proxy_ports?: ProxyPort[] };
}
// The text that a shell runs, or the words of another program.
export const lineOf = (entrypoint: string | readonly string[] | undefined): string =>
  typeof entrypoint === 'string' ? entrypoint : (entrypoint?.[1] === '-c' ? entrypoint.slice(2) : (entrypoint ?? [])).join(' ');

// How a task ended, and the last lines of its output: "Killed", "Exit code 3".
export function endOf({ exitStatus }: Command): { reason: string; output: string } {
  const [first = '', ...rest] = exitStatus.trimEnd().split('\n');
  return { reason: first.charAt(0).toUpperCase() + first.slice(1), output: rest.join('\n') };
}

export const command = async (id: string, signal?: AbortSignal): Promise<CommandWithPorts> => {
  const found = await get<{ command: Command; config?: CommandConfig }>(at(id), signal);
  return { ...found.command, ports: found.config?.environment?.proxy_ports ?? [], line: lineOf(found.config?.entrypoint) };
};
// Address of the page of a port. The master redirects the browser to an address with a ticket.
export const portPage = (id: string, port: number): string => `/proxy/${encodeURIComponent(id)}:${port}/`;
export const killCommand = (id: string): Promise<unknown> => change('POST', `${at(id)}/kill`);
export const launch = async (line: string, slots: number, description: string): Promise<Command> =>
  (
    await change<{ command: Command }>('POST', '/api/v1/commands', {
      config: { entrypoint: ['/bin/sh', '-c', line], resources: { slots }, description },
    })
  ).command;
