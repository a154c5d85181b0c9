// Project page: description and the experiment table.
import { paths, useTitle } from '../address';
import { project } from '../calls/places';
import { Empty } from '../components/Empty';
import { Loaded } from '../components/Loaded';
import { Archived } from '../components/notes';
import { PageHead } from './PageHead';
import { PlaceActions } from '../components/PlaceActions';
import { useLive } from '../live';
import { ExperimentList } from './ExperimentsPage';

export function ProjectPage({ id }: { id: number }) {
  const live = useLive(`project ${id}`, (signal) => project(id, signal), (change) => change === 'everything');
  useTitle(live.data?.name ?? 'Project');
  return (
    <Loaded live={live} missing={`There is no project ${id}.`}>
      {(one) => (
        <>
          <PageHead
            path={[
              [paths.workspaces, 'Workspaces'],
              [paths.workspace(one.workspaceId), one.workspaceName],
            ]}
            title={one.name}
            facts={one.archived && <Archived />}
          >
            <div class="actions">
              <PlaceActions place="projects" one={one} up={paths.workspace(one.workspaceId)} reload={live.reload} />
            </div>
          </PageHead>
          {one.description !== '' && <p class="quiet">{one.description}</p>}
          <ExperimentList
            projectId={id}
            empty={
              <Empty icon="experiments" title="No experiments here yet" command={`workspace: ${one.workspaceName}\nproject: ${one.name}`}>
                Put these lines into a configuration, or move an experiment here from its page.
              </Empty>
            }
          />
        </>
      )}
    </Loaded>
  );
}
