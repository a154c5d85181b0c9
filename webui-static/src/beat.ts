// Live data is requested and drawn on common beats, so that a table and its charts are of one moment and the page is laid
// out once.

// Running durations and the progress of rows are drawn once in this time.
export const BEAT_MS = 1000;

// Rows and curves of several runs are requested once in this time.
export const RUNS_BEAT_MS = 2000;

// Milliseconds from `now` until the first beat after `since`, both of performance.now(); 0 if it has passed or there is no
// gap. Beats are the multiples of `gapMs`. Timers cut fractions off and would fire before the beat.
export const untilBeat = (since: number, gapMs: number, now = since): number =>
  gapMs > 0 ? Math.ceil(Math.max(0, (Math.floor(since / gapMs) + 1) * gapMs - now)) : 0;
