// Timers of the page: one for running durations, one for relative times; each active only while something uses it.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { BEAT_MS, untilBeat } from '../beat';

const MINUTE_MS = 20000;
const minute = signal(Date.now());
let minuteUsers = 0;
let minuteTimer = 0;

// The current time in milliseconds, updated every 20 s.
export function useMinute(): number {
  useEffect(() => {
    if (minuteUsers++ === 0) minuteTimer = window.setInterval(() => (minute.value = Date.now()), MINUTE_MS);
    if (Date.now() - minute.value > MINUTE_MS) minute.value = Date.now();
    return () => {
      if (--minuteUsers === 0) clearInterval(minuteTimer);
    };
  }, []);
  return minute.value;
}

const now = signal(Date.now());
let users = 0;
let timer = 0;

function beat(): void {
  timer = window.setTimeout(() => {
    now.value = Date.now();
    beat();
  }, untilBeat(performance.now(), BEAT_MS));
}

// The current time in milliseconds, updated every second while `running`.
export function useNow(running: boolean): number {
  useEffect(() => {
    if (!running) return undefined;
    if (users++ === 0) beat();
    now.value = Date.now();
    return () => {
      if (--users === 0) clearTimeout(timer);
    };
  }, [running]);
  return now.value;
}
