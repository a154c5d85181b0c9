// Workspace page: projects and role assignments.
import { useLocation } from 'preact-iso';
import { paths, useQuery, useTitle } from '../address';
import { GiveRole, RoleTags } from '../accounts/Roles';
import { membersOf, users, type Assignment } from '../calls/accounts';
import { makeProject, projects, workspace, workspaces } from '../calls/places';
import { field, FormDialog } from '../components/FormDialog';
import { Empty } from '../components/Empty';
import { Loaded } from '../components/Loaded';
import { Archived } from '../components/notes';
import { PageHead } from './PageHead';
import { PlaceActions } from '../components/PlaceActions';
import { Table } from '../components/Table';
import { currentTab, Tabs } from '../components/Tabs';
import { Time } from '../components/Time';
import { counted } from '../format';
import { useLive } from '../live';
import { Words } from '../components/Words';

const TABS = ['Projects', 'Members'] as const;

function Projects({ id }: { id: number }) {
  const live = useLive(
    `projects ${id}`,
    (signal) => projects(id, signal),
    (change) => change === 'everything' || (change.kind === 'experiment' && !change.sameState),
    2000,
  );
  return (
    <Loaded live={live}>
      {(all) =>
        all.length === 0 ? (
          <Empty icon="workspaces" title="No projects yet">
            A project is made above; an experiment is put there by <code>workspace</code> and <code>project</code> in its
            configuration.
          </Empty>
        ) : (
          <Table label="Projects" heads={['Name', 'Description', '#Experiments', '#Active', 'Last experiment']}>
            {all.map((one) => (
              <tr key={one.id}>
                <th scope="row">
                  <a href={paths.project(one.id)}>{one.name}</a> {one.archived && <Archived />}
                </th>
                <td class="reason">{one.description}</td>
                <td class="number">{one.numExperiments}</td>
                <td class="number">{one.numActiveExperiments}</td>
                <td>
                  <Time at={one.lastExperimentStartedAt} />
                </td>
              </tr>
            ))}
          </Table>
        )
      }
    </Loaded>
  );
}

function Members({ id }: { id: number }) {
  const live = useLive(`members ${id}`, (signal) => membersOf(id, signal), (change) => change === 'everything');
  const people = useLive('users', (signal) => users(signal), (change) => change === 'everything');
  const places = useLive('workspaces', (signal) => workspaces(signal), (change) => change === 'everything').data ?? [];
  return (
    <Loaded live={live}>
      {(members) => {
        const tags = (own: Assignment[], name: string, shown?: string) => (
          <td class="reason">
            <RoleTags own={own} places={places} name={name} shown={shown} may here={id} reload={live.reload} />
          </td>
        );
        return (
          <>
            <div class="section-head">
              <span class="quiet">
                {counted(members.users.length, 'member')}
                {members.groups.length > 0 && `, ${counted(members.groups.length, 'group')}`}
              </span>
              <span class="spring" />
              <GiveRole people={people.data ?? []} places={places} place={id} reload={live.reload} />
            </div>
            {members.users.length + members.groups.length === 0 && <p class="quiet">No user has a role here.</p>}
            {members.users.length + members.groups.length > 0 && (
              <Table label="Members" heads={['User or group', 'Roles']}>
                {members.users.map((one) => (
                  <tr key={one.id}>
                    <th scope="row">
                      {one.username} {one.displayName && one.displayName !== one.username && <span class="quiet other-name">{one.displayName}</span>}
                    </th>
                    {tags(one.roles, one.username, one.displayName)}
                  </tr>
                ))}
                {members.groups.map((one) => (
                  <tr key={`group ${one.name}`}>
                    <th scope="row">
                      Group {one.name} <span class="quiet other-name">{one.users.join(', ') || 'without members'}</span>
                    </th>
                    {tags(one.roles, `group ${one.name}`)}
                  </tr>
                ))}
              </Table>
            )}
          </>
        );
      }}
    </Loaded>
  );
}

export function WorkspacePage({ id }: { id: number }) {
  const { query } = useQuery();
  const { route } = useLocation();
  const live = useLive(`workspace ${id}`, (signal) => workspace(id, signal), (change) => change === 'everything');
  useTitle(live.data?.name ?? 'Workspace');
  const tab = currentTab(TABS, query.tab);
  const make = async (fields: FormData): Promise<void> => {
    route(paths.project((await makeProject(id, field(fields, 'name'), field(fields, 'description'))).id));
  };
  return (
    <Loaded live={live} missing={`There is no workspace ${id}.`}>
      {(one) => (
        <>
          <PageHead path={[[paths.workspaces, 'Workspaces']]} title={one.name} facts={one.archived && <Archived />}>
            <div class="actions">
              <FormDialog label="New project…" title="New project" submit="Create" work={make}>
                {() => (
                  <Words description="" />
                )}
              </FormDialog>
              <PlaceActions place="workspaces" one={one} up={paths.workspaces} reload={live.reload} />
            </div>
          </PageHead>
          <Tabs names={TABS} current={tab} />
          {tab === 'Projects' ? <Projects id={id} /> : <Members id={id} />}
        </>
      )}
    </Loaded>
  );
}
