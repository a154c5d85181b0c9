// Quotas of users and workspaces, and their use. Administrators change them; others see their own and those of
// workspaces that they see.
import { paths, useTitle } from '../address';
import { users } from '../calls/accounts';
import { workspaces } from '../calls/places';
import { amountText, isBytes, quotas, readAmount, removeQuota, RESOURCES, setQuota, type Quota } from '../calls/quotas';
import { Confirm } from '../components/Confirm';
import { Empty } from '../components/Empty';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { Table } from '../components/Table';
import { useLive } from '../live';
import { user as me } from '../session';
import { PageHead } from './PageHead';

interface Owner {
  scope: string;
  id: number;
  name: string;
}

const owners = async (signal?: AbortSignal): Promise<Owner[]> => {
  const [people, places] = await Promise.all([users(signal), workspaces(signal)]);
  return [
    ...people.map(({ id, username }) => ({ scope: 'user', id, name: username })),
    ...places.map(({ id, name }) => ({ scope: 'workspace', id, name })),
  ];
};

function NewQuota({ reload }: { reload: () => void }) {
  const live = useLive('quota owners', owners, (change) => change === 'everything');
  const all = live.data ?? [];
  const make = async (fields: FormData): Promise<void> => {
    const [scope = '', id = ''] = field(fields, 'owner').split(' ');
    const resource = field(fields, 'resource');
    await setQuota({ scope, id: Number(id), resource }, readAmount(resource, field(fields, 'limit')));
    reload();
  };
  return (
    <FormDialog label="New quota…" title="New quota" submit="Set" work={make}>
      {() => (
        <>
          <label>
            User or workspace
            <select name="owner">
              {['user', 'workspace'].map((scope) => (
                <optgroup key={scope} label={scope === 'user' ? 'Users' : 'Workspaces'}>
                  {all
                    .filter((one) => one.scope === scope)
                    .map((one) => (
                      <option key={one.id} value={`${scope} ${one.id}`}>
                        {one.name}
                      </option>
                    ))}
                </optgroup>
              ))}
            </select>
          </label>
          <label>
            Resource
            <select name="resource">
              {Object.entries(RESOURCES).map(([resource, name]) => (
                <option key={resource} value={resource}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label>
            Limit
            <input type="text" name="limit" required placeholder="8, or 500 GB for bytes" autocomplete="off" />
          </label>
        </>
      )}
    </FormDialog>
  );
}

function Actions({ one, reload }: { one: Quota; reload: () => void }) {
  const what = `${RESOURCES[one.resource] ?? one.resource} of ${one.name || one.id}`;
  const save = async (fields: FormData): Promise<void> => {
    await setQuota(one, readAmount(one.resource, field(fields, 'limit')));
    reload();
  };
  return (
    <>
      <FormDialog label="Edit…" name={`Edit ${what}`} title={what} submit="Set" plain work={save}>
        {() => (
          <label>
            {isBytes(one.resource) ? 'Limit (bytes, or such as 500 GB)' : 'Limit'}
            <input type="text" name="limit" required defaultValue={String(one.limit)} autocomplete="off" />
          </label>
        )}
      </FormDialog>
      <Confirm
        label="Remove…"
        name={`Remove ${what}`}
        title="Remove this quota?"
        yes="Remove"
        no="Keep it"
        plain
        work={() => removeQuota(one)}
        done={reload}
      >
        {what} will have no limit.
      </Confirm>
    </>
  );
}

export function QuotasPage() {
  useTitle('Quotas');
  const live = useLive('quotas', quotas, (change) => change === 'everything');
  const admin = me.value?.admin ?? false;
  return (
    <>
      <PageHead path={[[paths.users, 'Users']]} title="Quotas">
        <div class="actions">{admin && live.data?.length !== 0 && <NewQuota reload={live.reload} />}</div>
      </PageHead>
      <p class="intro">
        Limits on what a user or a workspace uses at the same time. Without a quota there is no limit; where both have one, the smaller applies.
      </p>
      <Loaded live={live}>
        {(all) =>
          all.length === 0 ? (
            <Empty icon="users" title="No quotas" command="det quota set --user USER slots 8">
              {admin && <NewQuota reload={live.reload} />}
            </Empty>
          ) : (
            <Table label="Quotas" heads={['Name', 'Kind', 'Resource', '#Used', '#Limit', '', 'Actions']}>
              {all.map((one) => (
                <tr key={`${one.scope} ${one.id} ${one.resource}`}>
                  <th scope="row">{one.name || one.id}</th>
                  <td>{one.scope === 'user' ? 'User' : 'Workspace'}</td>
                  <td>{RESOURCES[one.resource] ?? one.resource}</td>
                  <td class="number">
                    {amountText(one.resource, one.used)}
                    {one.used >= one.limit && <span class="state state-waiting">Full</span>}
                  </td>
                  <td class="number">{amountText(one.resource, one.limit)}</td>
                  <td class="share">
                    <progress max={Math.max(1, one.limit)} value={one.used} aria-label={`${amountText(one.resource, one.used)} of ${amountText(one.resource, one.limit)} used`} />
                  </td>
                  <td>{admin && <Actions one={one} reload={live.reload} />}</td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
    </>
  );
}
