// API calls for the saved views of the signed-in user. The master stores them, so every browser shows them.
import { change, get } from '../http';

export interface SavedView {
  name: string;
  query: string; // of a page with a run table, without "?"
}

const KEY = 'views';
const STORAGE = 'det-webui';

// The views of a stored text; an entry that cannot be read is left out.
export function readViews(text: string | undefined): SavedView[] {
  try {
    const raw = JSON.parse(text ?? '[]');
    if (!Array.isArray(raw)) return [];
    return raw.filter((view) => typeof view?.name === 'string' && typeof view?.query === 'string');
  } catch {
    return [];
  }
}

export const savedViews = async (signal?: AbortSignal): Promise<SavedView[]> => {
  const { settings } = await get<{ settings?: { key: string; storagePath: string; value: string }[] }>('/api/v1/users/setting', signal);
  return readViews(settings?.find((one) => one.key === KEY && one.storagePath === STORAGE)?.value);
};

// The views with `query` under this name, or without the name.
export const withView = (all: readonly SavedView[], name: string, query?: string): SavedView[] => [
  ...all.filter((view) => view.name !== name),
  ...(query === undefined ? [] : [{ name, query }]),
];

export const saveViews = (views: readonly SavedView[]): Promise<unknown> =>
  change('POST', '/api/v1/users/setting', { settings: [{ key: KEY, storagePath: STORAGE, value: JSON.stringify(views) }] });
