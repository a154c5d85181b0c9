// A moment as a relative time; the exact local time is shown on hover.
import { ago, dateTime } from '../format';
import { useMinute } from './clock';

export function Time({ at }: { at: string | null | undefined }) {
  const now = useMinute();
  if (!at) return null;
  return (
    <time dateTime={at} title={dateTime(at)}>
      {ago(at, now)}
    </time>
  );
}
