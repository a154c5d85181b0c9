// Owns speaking HTTP with the master: addresses, headers, errors. Must never touch the page or keep state. The session
// rides in an HttpOnly cookie that only the server can set or read.
import type { Problem } from './wire';

// A refusal by the master (status ≥ 400), or status 0: the master could not be reached.
export class ApiError extends Error {
  readonly status: number;
  readonly problems: Problem[]; // of a text that was sent: one entry a mistake
  constructor(status: number, message: string, problems: Problem[] = []) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.problems = problems;
  }
}

export type Query = Record<string, string | number | boolean | readonly (string | number)[]>;

// `/path?a=1&b=2&b=3`; values escaped, arrays repeated.
export function address(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((one) => params.append(key, String(one)));
    else params.append(key, String(value));
  }
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}

// What an error answer says: the gateway's {"error":{"error":"…"}} or {"message":"…"}.
export function errorMessage(status: number, body: string): string {
  try {
    const parsed = JSON.parse(body);
    const text = parsed?.error?.error ?? parsed?.error?.message ?? parsed?.message;
    if (typeof text === 'string' && text !== '') return text;
  } catch {
    // Not JSON: some proxy's page, of no use to the reader.
  }
  return `the master answered with status ${status}`;
}

// The details of an error answer, if it has any.
export function errorProblems(body: string): Problem[] {
  try {
    const details = JSON.parse(body)?.error?.details;
    return Array.isArray(details) ? details.filter((one) => typeof one?.message === 'string') : [];
  } catch {
    return [];
  }
}

export async function request(method: string, url: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (method !== 'GET') {
    headers['X-Requested-With'] = 'det';
    headers['Content-Type'] = 'application/json';
  }
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      credentials: 'same-origin',
      cache: 'no-store',
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, 'the master cannot be reached');
  }
  if (response.ok) return response;
  const said = await response.text();
  throw new ApiError(response.status, errorMessage(response.status, said), errorProblems(said));
}

export async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return (await request('GET', url, undefined, signal)).json() as Promise<T>;
}

// The lines of a streamed body, each without its end; a last line without an end counts.
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line;
    if (done) break;
  }
  if (rest !== '') yield rest;
}

// A change, told as JSON.
export async function change<T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, body: unknown = {}): Promise<T> {
  return (await request(method, url, body)).json() as Promise<T>;
}
