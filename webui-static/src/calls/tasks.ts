// API calls for commands, which run once, with or without slots.
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

const at = (id: string): string => `/api/v1/commands/${encodeURIComponent(id)}`;

// All commands, newest first.
export const commands = async (signal?: AbortSignal): Promise<Command[]> =>
  (await get<{ commands: Command[] }>(address('/api/v1/commands', { orderBy: 'ORDER_BY_DESC' }), signal)).commands;
// A port that the command offers. A program behind a TCP port has no page.
export interface ProxyPort {
  proxy_port: number;
  proxy_tcp?: boolean;
}
export interface CommandWithPorts extends Command {
  ports: ProxyPort[];
}
interface CommandConfig {
  environment?: { proxy_ports?: ProxyPort[] };
}
export const command = async (id: string, signal?: AbortSignal): Promise<CommandWithPorts> => {
  const found = await get<{ command: Command; config?: CommandConfig }>(at(id), signal);
  return { ...found.command, ports: found.config?.environment?.proxy_ports ?? [] };
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
