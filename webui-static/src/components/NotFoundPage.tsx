// Page for unknown addresses and missing objects.
import { useLocation } from 'preact-iso';
import { paths, useTitle } from '../address';
import { Empty } from './Empty';

// The lists above missing objects, by the start of their address.
const LISTS: readonly (readonly [string, string, string])[] = [
  ['/det/experiments/', paths.experiments, 'Go to the experiments'],
  ['/det/trials/', paths.experiments, 'Go to the experiments'],
  ['/det/models/', paths.models, 'Go to the models'],
  ['/det/tasks/', paths.tasks, 'Go to the tasks'],
  ['/det/workspaces/', paths.workspaces, 'Go to the workspaces'],
  ['/det/projects/', paths.workspaces, 'Go to the workspaces'],
];

// `what` is the sentence about a missing object.
export function NotFoundPage({ what }: { what?: string }) {
  const { path } = useLocation();
  useTitle('Not found');
  const [, href, label] = (what && LISTS.find(([start]) => path.startsWith(start))) || ['', paths.home, 'Go to the dashboard'];
  return (
    <>
      <Empty icon="search" title="Not found" isPage>
        {what ?? 'There is no page at this address.'}
      </Empty>
      <p class="below-empty">
        <a class="button" href={href}>
          {label}
        </a>
      </p>
    </>
  );
}
