// Keeps the data of a view fresh: loads it once, and again when an event reports that it
// is out of date. Nothing polls.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { ApiError } from './api';
import { untilBeat } from './beat';
import { events, subscribe, type Change, type ServerEvent } from './events';
import { sessionEnded } from './session';

// Runs `work` (which must not throw) on request: never concurrently and at most once between two beats, which are
// multiples of `gapMs` on the page's clock. Requests before the next beat are merged into one run on it, so every
// request is followed by a complete run, and refreshers with the same gap run together.
export class Refresher {
  private running = false;
  private again = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastStart = -1; // none yet
  private closed = false;

  constructor(
    private readonly work: () => Promise<void>,
    private readonly gapMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  request(): void {
    if (this.closed) return;
    if (this.running) {
      this.again = true;
      return;
    }
    if (this.timer !== undefined) return;
    const wait = this.lastStart < 0 ? 0 : untilBeat(this.lastStart, this.gapMs, this.now());
    if (wait > 0) {
      this.timer = setTimeout(() => {
        this.timer = undefined;
        void this.run();
      }, wait);
    } else {
      void this.run();
    }
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  private async run(): Promise<void> {
    this.running = true;
    this.again = false;
    this.lastStart = this.now();
    try {
      await this.work();
    } finally {
      this.running = false;
      if (this.again) this.request();
    }
  }
}

export interface Live<T> {
  data: T | undefined; // newest loaded data; kept when a later load fails
  error: ApiError | undefined; // set while the last load has failed
  reload: () => void;
}

// Data loaded by `load`, reloaded on every change that `concerns` it, at most once between two beats of `gapMs`. `apply` returns the
// data with the content of an event, shown until the reload. A new `key` discards the data.
export function useLive<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  concerns: (change: Change) => boolean,
  gapMs = 250,
  apply?: (data: T, event: ServerEvent) => T,
): Live<T> {
  const state = useSignal<{ key: string; data?: T; error?: ApiError }>({ key });
  const latest = useRef({ load, concerns, apply });
  latest.current = { load, concerns, apply };
  const refresher = useRef<Refresher>();
  // A layout effect starts the request one frame earlier than useEffect().
  useLayoutEffect(() => {
    const abort = new AbortController();
    const own = new Refresher(async () => {
      try {
        await events.settled();
        const data = await latest.current.load(abort.signal);
        const before = state.value;
        // The same data is not drawn again.
        if (!abort.signal.aborted && !(before.key === key && before.data === data && !before.error)) state.value = { key, data };
      } catch (cause) {
        if (abort.signal.aborted) return;
        const error = cause instanceof ApiError ? cause : new ApiError(-1, String(cause));
        if (error.status === 401) sessionEnded();
        const data = state.value.key === key ? state.value.data : undefined;
        state.value = { key, data, error };
      }
    }, gapMs);
    refresher.current = own;
    own.request();
    const unsubscribe = subscribe((change) => {
      const { key: of, data } = state.value;
      if (change !== 'everything' && of === key && data !== undefined && latest.current.apply) {
        const next = latest.current.apply(data, change);
        if (next !== data) state.value = { ...state.value, data: next };
      }
      if (latest.current.concerns(change)) own.request();
    });
    return () => {
      unsubscribe();
      own.close();
      abort.abort();
    };
  }, [key]);
  const current = state.value.key === key ? state.value : undefined;
  return { data: current?.data, error: current?.error, reload: () => refresher.current?.request() };
}
