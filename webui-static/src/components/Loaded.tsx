// Shows a placeholder while data is loading and an error when loading fails.
import type { ComponentChildren } from 'preact';
import type { Live } from '../live';
import { NotFoundPage } from './NotFoundPage';
import { ErrorNote } from './notes';

interface Props<T> {
  live: Live<T>;
  missing?: string; // text for an object that does not exist; default: the master's message
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
