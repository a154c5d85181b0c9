// Lists too long to load at once: fetches pages of rows around the visible part, and again when they change.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { ApiError } from './api';
import { subscribe, type Change } from './events';
import { Refresher } from './live';
import { sessionEnded } from './session';

export const kPageRows = 100;
// Maximum number of pages kept; the ones farthest from the visible part are dropped first.
const kMostPages = 40;

export interface Answer<T> {
  rows: T[];
  total: number;
}

// The pages that contain rows first..last of `total`.
export function pagesOf(first: number, last: number, total: number): number[] {
  const end = Math.min(last, Math.max(0, total - 1));
  const out: number[] = [];
  for (let page = Math.floor(Math.max(0, first) / kPageRows); page * kPageRows <= end; page++) out.push(page);
  return out;
}

export interface Paged<T> {
  total: number | undefined; // undefined until the first response
  at: (index: number) => T | undefined;
  loaded: () => T[];
  look: (first: number, last: number) => void; // reports the visible rows
  error: ApiError | undefined;
  reload: () => void;
}

class Store<T> {
  pages = new Map<number, T[]>();
  stale = new Set<number>();
  total: number | undefined;
  first = 0;
  last = kPageRows - 1;

  wanted(): number[] {
    const all = this.total === undefined ? [0] : pagesOf(this.first, this.last, this.total);
    return (all.length === 0 ? [0] : all).filter((page) => !this.pages.has(page) || this.stale.has(page));
  }

  put(page: number, answer: Answer<T>): void {
    this.total = answer.total;
    this.pages.set(page, answer.rows);
    this.stale.delete(page);
    const here = Math.floor(this.first / kPageRows);
    while (this.pages.size > kMostPages) {
      const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - here) - Math.abs(a - here))[0] ?? 0;
      this.pages.delete(far);
    }
  }

  outdate(): void {
    for (const page of this.pages.keys()) this.stale.add(page);
  }
}

// Rows loaded by `load`, reloaded on every change that `concerns` them. A new `key` discards the rows.
export function usePaged<T>(
  key: string,
  load: (offset: number, limit: number, signal: AbortSignal) => Promise<Answer<T>>,
  concerns: (change: Change) => boolean,
  gapMs = 300,
): Paged<T> {
  const drawn = useSignal<{ key: string; version: number; error?: ApiError }>({ key, version: 0 });
  const store = useRef<{ key: string; rows: Store<T> }>({ key, rows: new Store<T>() });
  if (store.current.key !== key) store.current = { key, rows: new Store<T>() };
  const latest = useRef({ load, concerns });
  latest.current = { load, concerns };
  const refresher = useRef<Refresher>();
  useEffect(() => {
    const abort = new AbortController();
    const rows = store.current.rows;
    const own = new Refresher(async () => {
      try {
        for (let page = rows.wanted()[0]; page !== undefined; page = rows.wanted()[0]) {
          rows.put(page, await latest.current.load(page * kPageRows, kPageRows, abort.signal));
          if (abort.signal.aborted) return;
          drawn.value = { key, version: drawn.value.version + 1 };
        }
      } catch (cause) {
        if (abort.signal.aborted) return;
        const error = cause instanceof ApiError ? cause : new ApiError(-1, String(cause));
        if (error.status === 401) sessionEnded();
        drawn.value = { key, version: drawn.value.version + 1, error };
      }
    }, gapMs);
    refresher.current = own;
    own.request();
    const unsubscribe = subscribe((change) => {
      if (!latest.current.concerns(change)) return;
      rows.outdate();
      own.request();
    });
    return () => {
      unsubscribe();
      own.close();
      abort.abort();
    };
  }, [key]);
  const { rows } = store.current;
  return {
    total: drawn.value.version > 0 || rows.total !== undefined ? rows.total : undefined,
    at: (index) => rows.pages.get(Math.floor(index / kPageRows))?.[index % kPageRows],
    loaded: () => [...rows.pages.values()].flat(),
    look: (first, last) => {
      rows.first = first;
      rows.last = last;
      if (rows.total !== undefined && rows.wanted().length > 0) refresher.current?.request();
    },
    error: drawn.value.key === key ? drawn.value.error : undefined,
    reload: () => {
      rows.outdate();
      refresher.current?.request();
    },
  };
}
