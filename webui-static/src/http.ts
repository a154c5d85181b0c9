// HTTP requests to the master: addresses, headers, errors. Does not touch the page and keeps no state. The
// session is an HttpOnly cookie, which scripts cannot read.
import type { Problem } from './wire';

// An error response of the master (status ≥ 400), or status 0 when the master could not be reached.
export class ApiError extends Error {
  readonly status: number;
  readonly problems: Problem[]; // mistakes in a submitted text, one entry each
  constructor(status: number, message: string, problems: Problem[] = []) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.problems = problems;
  }
}

export type Query = Record<string, string | number | boolean | readonly (string | number)[]>;

// `/path?a=1&b=2&b=3`: values are escaped, arrays are repeated keys.
export function address(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((one) => params.append(key, String(one)));
    else params.append(key, String(value));
  }
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}

// The message of an error response: the gateway's {"error":{"error":"…"}} or {"message":"…"}.
export function errorMessage(status: number, body: string): string {
  try {
    const parsed = JSON.parse(body);
    const text = parsed?.error?.error ?? parsed?.error?.message ?? parsed?.message;
    if (typeof text === 'string' && text !== '') return text;
  } catch {
    // Not JSON, for example an error page of a proxy.
  }
  return `the master answered with status ${status}`;
}

// The details of an error response; empty when it has none.
function errorProblems(body: string): Problem[] {
  try {
    const details = JSON.parse(body)?.error?.details;
    return Array.isArray(details) ? details.filter((one) => typeof one?.message === 'string') : [];
  } catch {
    return [];
  }
}

export async function request(method: string, url: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  // None of its own on GET: the browser uses what index.html has preloaded only for an equal request.
  const headers: Record<string, string> = {};
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

// Lines of a streamed body without line ends; an unterminated last line is included.
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

// Sends a change as JSON and returns the response.
export async function change<T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, body: unknown = {}): Promise<T> {
  return (await request(method, url, body)).json() as Promise<T>;
}
