// All workspaces and the shared configuration templates.
import { useLocation } from 'preact-iso';
import { paths, useQuery, useTitle } from '../address';
import { NewTemplate, Templates } from '../accounts/Templates';
import { makeWorkspace, workspaces } from '../calls/places';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { Archived } from '../components/notes';
import { Table } from '../components/Table';
import { currentTab, Tabs } from '../components/Tabs';
import { useLive } from '../live';
import { Words } from '../components/Words';

const TABS = ['Workspaces', 'Templates'] as const;

function NewWorkspace() {
  const { route } = useLocation();
  const make = async (fields: FormData): Promise<void> => {
    route(paths.workspace((await makeWorkspace(field(fields, 'name'))).id));
  };
  return (
    <FormDialog label="New workspace…" title="New workspace" submit="Create" work={make}>
      {() => <Words />}
    </FormDialog>
  );
}

function List() {
  const live = useLive(
    'workspaces',
    (signal) => workspaces(signal),
    (change) => change === 'everything' || (change.kind === 'experiment' && !change.sameState),
    2000,
  );
  return (
    <Loaded live={live}>
      {(all) => (
        <Table label="Workspaces" heads={['Name', '#Projects', '#Experiments', 'Owner']}>
          {all.map((one) => (
            <tr key={one.id}>
              <th scope="row">
                <a href={paths.workspace(one.id)}>{one.name}</a> {one.archived && <Archived />}
              </th>
              <td class="number">{one.numProjects}</td>
              <td class="number">{one.numExperiments}</td>
              <td>{one.username}</td>
            </tr>
          ))}
        </Table>
      )}
    </Loaded>
  );
}

export function WorkspacesPage() {
  useTitle('Workspaces');
  const { query } = useQuery();
  const tab = currentTab(TABS, query.tab);
  return (
    <>
      <div class="section-head">
        <h1>Workspaces</h1>
        <span class="spring" />
        {tab === 'Workspaces' ? <NewWorkspace /> : <NewTemplate />}
      </div>
      <Tabs names={TABS} current={tab} />
      {tab === 'Workspaces' ? <List /> : <Templates />}
    </>
  );
}
