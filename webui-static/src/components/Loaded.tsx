// Owns what a page shows until its data is there, and when it cannot be.
import type { ComponentChildren } from 'preact';
import type { Live } from '../live';
import { NotFoundPage } from '../pages/NotFoundPage';
import { ErrorNote } from './notes';

interface Props<T> {
  live: Live<T>;
  missing?: string; // what is said of a thing that does not exist; without, the master's words
  children: (data: T) => ComponentChildren;
}

export function Loaded<T>({ live, missing, children }: Props<T>) {
  if (missing && live.error?.status === 404) return <NotFoundPage what={missing} />;
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
