// Settings of this browser: theme, density, share of the table beside its panels, alerts. Kept in local storage, never sent.
import { batch, effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'roomy' | 'dense';
const KEY = 'det.settings';

// Percent of the width that a table has beside its panels.
export const SPLIT = { min: 20, max: 80, first: 48 };

interface Stored {
  theme: Theme;
  density: Density;
  split: number;
  alerts: boolean; // show notifications
}

// Parses the stored settings. Each part is checked separately, so an invalid
// entry does not affect the others.
export function readSettings(text: string | null): Stored {
  const out: Stored = { theme: 'system', density: 'roomy', split: SPLIT.first, alerts: false };
  try {
    const raw = JSON.parse(text ?? '{}');
    if (raw?.theme === 'light' || raw?.theme === 'dark') out.theme = raw.theme;
    if (raw?.density === 'dense') out.density = raw.density;
    if (raw?.alerts === true) out.alerts = true;
    if (raw?.split >= SPLIT.min && raw?.split <= SPLIT.max) out.split = Number(raw.split);
  } catch {
    // Unreadable: use the defaults.
  }
  return out;
}

function load(): Stored {
  try {
    return readSettings(localStorage.getItem(KEY));
  } catch {
    return readSettings(null); // local storage is disabled
  }
}

const start = typeof localStorage === 'undefined' ? readSettings(null) : load();
export const theme = signal<Theme>(start.theme);
export const density = signal<Density>(start.density);
export const split = signal<number>(start.split);
export const alerts = signal<boolean>(start.alerts);

export function followSettings(): void {
  effect(() => {
    const root = document.documentElement;
    root.dataset.theme = theme.value;
    root.dataset.density = density.value;
    try {
      localStorage.setItem(
        KEY,
        JSON.stringify({ theme: theme.value, density: density.value, split: split.value, alerts: alerts.value }),
      );
    } catch {
      // Local storage is full or disabled: the setting lasts until the page is closed.
    }
  });
  // Written by another page of this browser.
  addEventListener('storage', ({ key, newValue }) => {
    if (key !== KEY) return;
    const next = readSettings(newValue);
    batch(() => {
      theme.value = next.theme;
      density.value = next.density;
      split.value = next.split;
      alerts.value = next.alerts;
    });
  });
}
