// A moment as a relative time; the exact local time is shown on hover. With a verb: "failed 2 d ago", "failed just now".
import { ago, dateTime } from '../format';
import { useMinute } from './clock';

export function Time({ at, verb }: { at: string | null | undefined; verb?: string }) {
  const now = useMinute();
  if (!at) return null;
  const text = ago(at, now);
  return (
    <time dateTime={at} title={dateTime(at)}>
      {verb === undefined ? text : `${verb} ${text}`}
    </time>
  );
}
