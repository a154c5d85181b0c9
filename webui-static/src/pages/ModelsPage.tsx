// The model registry: all registered models.
import { useLocation } from 'preact-iso';
import { paths, useQuery, useTitle } from '../address';
import { makeModel, models } from '../calls/models';
import { workspaces } from '../calls/places';
import { Empty } from '../components/Empty';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { Archived } from '../components/notes';
import { Table } from '../components/Table';
import { Time } from '../components/Time';
import { useLive } from '../live';
import { Words } from '../components/Words';

function PlaceChoice() {
  const live = useLive('workspaces', (signal) => workspaces(signal), () => false);
  return (
    <label>
      Workspace
      <select name="place">
        {live.data
          ?.filter((one) => !one.archived)
          .map((one) => (
            <option key={one.id} value={one.id}>
              {one.name}
            </option>
          ))}
      </select>
    </label>
  );
}

function NewModel() {
  const { route } = useLocation();
  const make = async (fields: FormData): Promise<void> => {
    const made = await makeModel(field(fields, 'name'), field(fields, 'description'), Number(field(fields, 'place')) || 1);
    route(paths.model(made.name));
  };
  return (
    <FormDialog label="New model…" title="New model" submit="Create" work={make}>
      {() => (
        <>
          <Words description="" />
          <PlaceChoice />
        </>
      )}
    </FormDialog>
  );
}

export function ModelsPage() {
  useTitle('Models');
  const { query, setQuery } = useQuery();
  const archived = query.archived === '1';
  const live = useLive(
    `models ${archived}`,
    (signal) => models(archived, signal),
    (change) => change === 'everything',
  );
  return (
    <>
      <div class="section-head">
        <h1>Models</h1>
        <label class="check">
          <input type="checkbox" checked={archived} onChange={() => setQuery({ archived: archived ? '' : '1' })} />
          Show archived
        </label>
        <span class="spring" />
        <NewModel />
      </div>
      <Loaded live={live}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon="models" title="No models yet" command="det model create NAME">
              A model has versions. A checkpoint becomes a version by Register on the checkpoint.
            </Empty>
          ) : (
            <Table label="Models" heads={['Name', 'Description', 'Labels', '#Versions', 'User', 'Changed']}>
              {all.map((one) => (
                <tr key={one.id}>
                  <th scope="row">
                    <a href={paths.model(one.name)}>{one.name}</a> {one.archived && <Archived />}
                  </th>
                  <td class="reason">{one.description}</td>
                  <td class="reason">
                    {one.labels.map((label) => (
                      <span class="tag" key={label}>
                        {label}
                      </span>
                    ))}
                  </td>
                  <td class="number">{one.numVersions}</td>
                  <td>{one.username}</td>
                  <td>
                    <Time at={one.lastUpdatedTime} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
    </>
  );
}
