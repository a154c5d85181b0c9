// Keyboard shortcuts of the whole page; inactive while a field or dialog has the focus.
import { signal } from '@preact/signals';
import { paths } from './address';

export const helpOpen = signal(false);

// Keys, separated by spaces; "or" stands between alternatives.
export const SHORTCUTS: readonly (readonly [string, string])[] = [
  ['g d', 'Dashboard'],
  ['g e', 'Experiments'],
  ['g m', 'Models'],
  ['g t', 'Tasks'],
  ['g w', 'Workspaces'],
  ['g c', 'Cluster'],
  ['g u', 'Users'],
  ['g h', 'Webhooks'],
  ['g s', 'Settings'],
  ['Ctrl K', 'Search or jump to a page, experiment, trial, model or action'],
  ['/', 'Filter the table'],
  ['j k or ↓ ↑', 'Next, previous row of the table'],
  ['x or Space', 'Select the row'],
  ['v', 'Show or hide the curves of the row'],
  ['p', 'Pin the row above the others, or take it back'],
  ['Enter', 'Open the row'],
  ['?', 'Show this list'],
];

const PLACES: Record<string, string> = {
  d: paths.home,
  e: paths.experiments,
  m: paths.models,
  t: paths.tasks,
  w: paths.workspaces,
  c: paths.cluster,
  u: paths.users,
  h: paths.webhooks,
  s: paths.settings,
};

// True while keys belong to a field or a dialog.
export function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return Boolean(element?.closest?.('input, textarea, select, dialog, [contenteditable]'));
}

// Handles keys until the returned function is called; `go` navigates to a page.
export function followKeys(go: (path: string) => void): () => void {
  let after = '';
  let timer = 0;
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const was = after;
    after = '';
    clearTimeout(timer);
    if (was === 'g' && PLACES[event.key]) {
      event.preventDefault();
      go(PLACES[event.key] ?? paths.home);
    } else if (event.key === 'g') {
      after = 'g';
      timer = window.setTimeout(() => (after = ''), 1500);
    } else if (event.key === '?') {
      helpOpen.value = true;
    } else if (event.key === '/') {
      const field = document.querySelector<HTMLInputElement>('input[type="search"]');
      if (!field) return;
      event.preventDefault();
      field.focus();
    }
  };
  document.addEventListener('keydown', onKey);
  return () => {
    clearTimeout(timer);
    document.removeEventListener('keydown', onKey);
  };
}
