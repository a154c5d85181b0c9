// One timer for all running durations on the page; active only while one is shown.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

const now = signal(Date.now());
let users = 0;
let timer = 0;

// The current time in milliseconds, updated every second while `running`.
export function useNow(running: boolean): number {
  useEffect(() => {
    if (!running) return undefined;
    if (users++ === 0) timer = window.setInterval(() => (now.value = Date.now()), 1000);
    now.value = Date.now();
    return () => {
      if (--users === 0) clearInterval(timer);
    };
  }, [running]);
  return now.value;
}
