// Lists too long to load at once: fetches pages of rows around the visible part, and again when they change.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { ApiError } from './api';
import { BEAT_MS, RUNS_BEAT_MS, untilBeat } from './beat';
import { events, subscribe, type Change, type ServerEvent } from './events';
import { Refresher } from './live';
import { sessionEnded } from './session';

export const PAGE_ROWS = 50;
// Maximum number of pages kept; the ones farthest from the visible part are dropped first.
const MAX_PAGES = 40;

export interface Answer<T> {
  rows: T[];
  total: number;
}

// The pages that contain rows first..last of `total`.
export function pagesOf(first: number, last: number, total: number): number[] {
  const end = Math.min(last, Math.max(0, total - 1));
  const out: number[] = [];
  for (let page = Math.floor(Math.max(0, first) / PAGE_ROWS); page * PAGE_ROWS <= end; page++) out.push(page);
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

// Updates of single rows: which row an event is about, its new content, and the request for some rows. A row
// that `load` does not return is no longer part of the list.
export interface RowUpdates<T> {
  id: (row: T) => number;
  changedId: (event: ServerEvent) => number | undefined;
  apply: (row: T, event: ServerEvent) => T;
  load: (ids: number[], signal: AbortSignal) => Promise<T[]>;
}

// The first rows, requested before the list is drawn. `isFresh` tells, once the event stream is live, whether they miss
// no change.
export interface Early<T> {
  rows: Answer<T> | undefined; // once they have arrived
  arrived: Promise<Answer<T> | undefined>; // undefined: the request has failed
  isFresh: () => Promise<boolean>;
}

// Most changed rows that are requested at once.
const ROWS_AT_ONCE = 100;

export class Store<T> {
  pages = new Map<number, T[]>();
  stale = new Set<number>();
  loading = new Set<number>(); // requested pages
  changed = new Set<number>(); // ids of rows to request
  total: number | undefined;
  first = 0;
  last = PAGE_ROWS - 1;
  isNew = true; // nothing was requested for it

  wanted(): number[] {
    const all = this.total === undefined ? [0] : pagesOf(this.first, this.last, this.total);
    return (all.length === 0 ? [0] : all).filter((page) => !this.pages.has(page) || this.stale.has(page));
  }

  put(page: number, answer: Answer<T>): void {
    this.total = answer.total;
    this.pages.set(page, answer.rows);
    this.loading.delete(page);
    const here = Math.floor(this.first / PAGE_ROWS);
    while (this.pages.size > MAX_PAGES) {
      const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - here) - Math.abs(a - here))[0] ?? 0;
      this.pages.delete(far);
    }
  }

  // Requests a page. An event during the request leaves it stale, and so does a failure.
  private async load(page: number, request: (page: number) => Promise<Answer<T>>): Promise<void> {
    this.stale.delete(page);
    this.loading.add(page);
    try {
      this.put(page, await request(page));
    } catch (cause) {
      this.loading.delete(page);
      this.stale.add(page);
      throw cause;
    }
  }

  // Requests the wanted pages, each once: those that became stale meanwhile are for the next run. Stops when `isOver`, which
  // is called after each page.
  async loadWanted(request: (page: number) => Promise<Answer<T>>, isOver: () => boolean): Promise<void> {
    const done = new Set<number>();
    const next = (): number | undefined => this.wanted().find((page) => !done.has(page));
    for (let page = next(); page !== undefined; page = next()) {
      done.add(page);
      await this.load(page, request);
      if (isOver()) return;
    }
  }

  // Replaces the loaded row with this id; false if there is none.
  replace(id: number, idOf: (row: T) => number, next: (row: T) => T): boolean {
    for (const rows of this.pages.values()) {
      const at = rows.findIndex((row) => idOf(row) === id);
      const row = rows[at];
      if (row === undefined) continue;
      rows[at] = next(row);
      return true;
    }
    return false;
  }

  // Removes up to `most` changed ids, oldest first.
  take(most: number): number[] {
    const ids = [...this.changed].slice(0, most);
    for (const id of ids) this.changed.delete(id);
    return ids;
  }

  outdate(): void {
    for (const page of [...this.pages.keys(), ...this.loading]) this.stale.add(page);
  }
}

// Rows loaded by `load`, reloaded on every change that `concerns` them. With `updates` an event about a loaded row
// requests that row only. A new `key` discards the rows; `early` is then asked for the first ones.
export function usePaged<T>(
  key: string,
  load: (offset: number, limit: number, signal: AbortSignal) => Promise<Answer<T>>,
  concerns: (change: Change) => boolean,
  gapMs = 300,
  updates?: RowUpdates<T>,
  early?: () => Early<T> | undefined,
): Paged<T> {
  const drawn = useSignal<{ key: string; version: number; error?: ApiError }>({ key, version: 0 });
  const store = useRef<{ key: string; rows: Store<T>; started: Early<T> | undefined }>();
  if (store.current?.key !== key) store.current = { key, rows: new Store<T>(), started: early?.() };
  const { rows, started } = store.current;
  if (rows.total === undefined && started?.rows) rows.put(0, started.rows);
  const latest = useRef({ load, concerns, updates });
  latest.current = { load, concerns, updates };
  const refresher = useRef<Refresher>();
  // Not after the next paint: the request would wait for a page without rows to be painted.
  useLayoutEffect(() => {
    const abort = new AbortController();
    const redraw = (error?: ApiError): void => {
      drawn.value = { key, version: drawn.value.version + 1, error };
    };
    const attempt = async (work: () => Promise<void>): Promise<void> => {
      try {
        await work();
      } catch (cause) {
        if (abort.signal.aborted) return;
        const error = cause instanceof ApiError ? cause : new ApiError(-1, String(cause));
        if (error.status === 401) sessionEnded();
        redraw(error);
      }
    };
    const drawEarly = async ({ rows: drawn, arrived, isFresh }: Early<T>): Promise<void> => {
      if (!drawn) rows.loading.add(0);
      const answer = drawn ?? (await arrived);
      if (!answer || abort.signal.aborted) return;
      if (!drawn) {
        rows.put(0, answer);
        redraw();
      }
      if (!(await isFresh())) rows.outdate();
    };
    const own = new Refresher(
      () =>
        attempt(async () => {
          if (started && rows.isNew) await drawEarly(started);
          rows.isNew = false;
          await events.settled();
          const request = (page: number): Promise<Answer<T>> => latest.current.load(page * PAGE_ROWS, PAGE_ROWS, abort.signal);
          await rows.loadWanted(request, () => {
            if (!abort.signal.aborted) redraw();
            return abort.signal.aborted;
          });
        }),
      gapMs,
    );
    const single = new Refresher(
      () =>
        attempt(async () => {
          const { updates: how } = latest.current;
          const ids = rows.take(ROWS_AT_ONCE);
          if (!how || ids.length === 0) return;
          let found: T[];
          try {
            found = await how.load(ids, abort.signal);
          } catch (cause) {
            // They are requested again with the next change or after the reconnection.
            for (const id of ids) rows.changed.add(id);
            throw cause;
          }
          if (abort.signal.aborted) return;
          for (const row of found) rows.replace(how.id(row), how.id, () => row);
          // The answer for a requested page may be older than these rows.
          if (rows.loading.size > 0) for (const id of ids) rows.changed.add(id);
          redraw();
          if (found.length < ids.length) reloadAll();
          if (rows.changed.size > 0) single.request();
        }),
      RUNS_BEAT_MS,
    );
    const reloadAll = (): void => {
      rows.outdate();
      own.request();
    };
    let drawing: ReturnType<typeof setTimeout> | undefined;
    // Running trials send several events a second.
    const redrawSoon = (): void => {
      drawing ??= setTimeout(
        () => {
          drawing = undefined;
          redraw();
        },
        untilBeat(performance.now(), BEAT_MS),
      );
    };
    // Returns true if the event is about a loaded row, which is updated.
    const update = (event: ServerEvent): boolean => {
      const { updates: how } = latest.current;
      const id = how?.changedId(event);
      if (!how || id === undefined || !rows.replace(id, how.id, (row) => how.apply(row, event))) return false;
      rows.changed.add(id);
      redrawSoon();
      single.request();
      return true;
    };
    refresher.current = own;
    own.request();
    const unsubscribe = subscribe((change) => {
      if (change !== 'everything' && update(change)) return;
      if (latest.current.concerns(change)) reloadAll();
    });
    return () => {
      unsubscribe();
      clearTimeout(drawing);
      own.close();
      single.close();
      abort.abort();
    };
  }, [key]);
  return {
    total: drawn.value.version > 0 || rows.total !== undefined ? rows.total : undefined,
    at: (index) => rows.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS],
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
