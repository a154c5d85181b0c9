// The first rows of the list of experiments, requested while the rest of the page is loading.
import { paths } from '../address';
import { searchWithEvent, type SearchQuery } from '../api';
import { events, subscribe } from '../events';
import { PAGE_ROWS, type Early } from '../paged';
import { ofExperiment, type Run } from './runs';
import { readView, toSearch } from './view';

let first: { search: string; early: Early<Run> } | undefined;

// The search of the page with this address; undefined for other pages than the list, and for a query, because its
// translation needs the columns.
export function firstSearch({ pathname, search }: Pick<Location, 'pathname' | 'search'>): SearchQuery | undefined {
  const view = readView(Object.fromEntries(new URLSearchParams(search)));
  return pathname === paths.experiments && view.text === '' ? { ...toSearch(undefined, view), projectId: 0 } : undefined;
}

// Requests the first rows of a list.
export function requestFirstRows(search: SearchQuery): void {
  let changed = false;
  let event = 0; // the last one that the rows contain
  const stop = subscribe(() => void (changed = true));
  const request = async (): Promise<Early<Run>['rows']> => {
    try {
      const { answer, event: last } = await searchWithEvent(search, PAGE_ROWS);
      event = last;
      early.rows = { rows: answer.experiments.map(ofExperiment), total: answer.pagination.total };
    } catch {
      // The list requests them again, and shows the error.
    }
    return early.rows;
  };
  const isFresh = async (): Promise<boolean> => {
    stop(); // the list is subscribed
    const before = await events.settled();
    return !changed && before > 0 && event >= before;
  };
  const early: Early<Run> = { rows: undefined, arrived: Promise.resolve(undefined), isFresh };
  early.arrived = request();
  first = { search: JSON.stringify(search), early };
}

// Resolves when the requested rows have arrived, but not later than after `ms`.
export const firstRowsArrived = (ms: number): Promise<unknown> =>
  first ? Promise.race([first.early.arrived, new Promise((resolve) => setTimeout(resolve, ms))]) : Promise.resolve();

// The first rows of this list if they were requested. Returns them once.
export function takeFirstRows(search: SearchQuery): Early<Run> | undefined {
  if (first?.search !== JSON.stringify(search)) return undefined;
  const { early } = first;
  first = undefined;
  return early;
}
