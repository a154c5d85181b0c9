// Owns what a page shows until its data is there, and when it cannot be.
import type { ComponentChildren } from 'preact';
import type { Live } from '../live';
import { ErrorNote } from './notes';

export function Loaded<T>({ live, children }: { live: Live<T>; children: (data: T) => ComponentChildren }) {
  if (live.data === undefined) {
    return live.error ? <ErrorNote error={live.error} retry={live.reload} /> : <p role="status">Loading…</p>;
  }
  return (
    <>
      <ErrorNote error={live.error} retry={live.reload} />
      {children(live.data)}
    </>
  );
}
