// Times of a log as text, in the local time zone and with 24 hours, as the log has them. Pure.
import { clock, dateTime, dayTime } from '../format';

const DAY = 'yyyy-mm-dd'.length;

// The moment of "2026-11-27 20:04:34" or "20:04", which is a time of the day of `near`. Returns undefined for other texts.
export function momentOf(text: string, near: string): Date | undefined {
  const [, day, time] = /^(?:(\d{4}-\d\d-\d\d)(?:[T ]|$))?\s*(\d\d?:\d\d(?::\d\d)?)?$/.exec(text.trim()) ?? [];
  if (!day && !time) return undefined;
  const full = (time ?? '00:00').replace(/^\d:/, '0$&');
  const moment = new Date(`${day ?? dateTime(near).slice(0, DAY)}T${full}`);
  return Number.isNaN(moment.getTime()) ? undefined : moment;
}

const seconds = (time: string): string => clock(time).slice('hh:mm'.length);

// "20:04:34 – 20:10:00", "From 20:04:34", "Until 27 Nov 20:10:00"; "" without bounds. Times of today have no date.
export function rangeText(since: string | undefined, until: string | undefined, nowMs: number): string {
  const today = dateTime(new Date(nowMs).toISOString()).slice(0, DAY);
  const text = (time: string): string => (dateTime(time).slice(0, DAY) === today ? clock(time) : dayTime(Date.parse(time)) + seconds(time));
  if (since && until) return `${text(since)} – ${text(until)}`;
  return since ? `From ${text(since)}` : until ? `Until ${text(until)}` : '';
}
