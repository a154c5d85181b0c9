// Settings of this browser: theme, density, named views. Kept in local storage and never sent.
import { effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'roomy' | 'dense';
export interface SavedView {
  name: string;
  query: string; // of the list of experiments, without "?"
}

const KEY = 'det.settings';

interface Stored {
  theme: Theme;
  density: Density;
  views: SavedView[];
}

// Parses the stored settings. Each part is checked separately, so an invalid
// entry does not affect the others.
export function readSettings(text: string | null): Stored {
  const out: Stored = { theme: 'system', density: 'roomy', views: [] };
  try {
    const raw = JSON.parse(text ?? '{}');
    if (raw?.theme === 'light' || raw?.theme === 'dark') out.theme = raw.theme;
    if (raw?.density === 'dense') out.density = raw.density;
    if (Array.isArray(raw?.views)) {
      out.views = raw.views.filter(
        (view: SavedView) => typeof view?.name === 'string' && typeof view?.query === 'string',
      );
    }
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
export const views = signal<SavedView[]>(start.views);

export function followSettings(): void {
  effect(() => {
    const root = document.documentElement;
    root.dataset.theme = theme.value;
    root.dataset.density = density.value;
    try {
      localStorage.setItem(
        KEY,
        JSON.stringify({ theme: theme.value, density: density.value, views: views.value }),
      );
    } catch {
      // Local storage is full or disabled: the setting lasts until the page is closed.
    }
  });
}
