// Addresses of the pages. View state that is worth linking to is part of the address.
import { useEffect } from 'preact/hooks';
import { useLocation } from 'preact-iso';

const compared = (ids: readonly number[], part: string): string => `drawn=${ids.join(',')}&layout=panels&panels=compare${part === '' ? '' : `&of=${part}`}`;

export const paths = {
  home: '/det/',
  experiments: '/det/experiments',
  experiment: (id: number) => `/det/experiments/${id}`,
  fork: (id: number, trial?: number) => `/det/experiments/${id}/fork${trial ? `?trial=${trial}` : ''}`,
  forkFrom: (id: number, checkpoint: string) => `/det/experiments/${id}/fork?checkpoint=${checkpoint}`,
  goOn: (id: number) => `/det/experiments/${id}/continue`,
  trial: (id: number) => `/det/trials/${id}`,
  trials: (ids: readonly number[]) => `/det/trials?ids=${ids.join(',')}`,
  // Runs side by side, also archived ones; `part` is "", "configuration" or "code". Without ids it is the list itself.
  compare: (ids: readonly number[], part = '') =>
    ids.length === 0 ? paths.experiments : `${paths.experiments}?q=${encodeURIComponent(`id in (${ids.join(', ')})`)}&archived=1&${compared(ids, part)}`,
  compareTrials: (ids: readonly number[], part = '') => `${paths.trials(ids)}&${compared(ids, part)}`,
  workspaces: '/det/workspaces',
  workspace: (id: number) => `/det/workspaces/${id}`,
  project: (id: number) => `/det/projects/${id}`,
  models: '/det/models',
  model: (name: string) => `/det/models/${encodeURIComponent(name)}`,
  tasks: '/det/tasks',
  task: (id: string) => `/det/tasks/${encodeURIComponent(id)}`,
  cluster: '/det/cluster',
  users: '/det/users',
  quotas: '/det/quotas',
  webhooks: '/det/webhooks',
  settings: '/det/settings',
  login: (next: string) => (next === '' ? '/det/login' : `/det/login?next=${encodeURIComponent(next)}`),
};

// The page to return to after sign-in. Only pages of this UI are accepted; anything else, such as another
// site, becomes the dashboard.
export function safeNext(next: string | undefined): string {
  return next && /^\/det\/[^\\]*$/.test(next) && !next.startsWith('/det/login') ? next : paths.home;
}

// The query of the address, and a function that changes some of its keys ("" removes a key). Changes replace
// the current history entry.
export function useQuery(): {
  query: Record<string, string | undefined>;
  setQuery: (change: Record<string, string>) => void;
} {
  const { path, query, route } = useLocation();
  const setQuery = (change: Record<string, string>): void => {
    const next = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(change)) {
      if (value === '') next.delete(key);
      else next.set(key, value);
    }
    const text = next.toString();
    route(text === '' ? path : `${path}?${text}`, true);
  };
  return { query, setQuery };
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === '' ? 'Determinant' : `${title} · Determinant`;
  }, [title]);
}
