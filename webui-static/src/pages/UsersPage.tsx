// User accounts and roles. Only administrators can change them.
import { paths, useTitle } from '../address';
import { GiveRole, RoleTags, useGrants } from '../accounts/Roles';
import { makeUser, patchUser, users, type Account } from '../calls/accounts';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { Table } from '../components/Table';
import { Time } from '../components/Time';
import { useLive } from '../live';
import { user as me } from '../session';

function NewUser({ reload }: { reload: () => void }) {
  const make = async (fields: FormData): Promise<void> => {
    const [username, displayName] = [field(fields, 'username'), field(fields, 'displayName')];
    await makeUser({ username, displayName, admin: field(fields, 'admin') === 'on', active: true }, String(fields.get('password')));
    reload();
  };
  return (
    <FormDialog label="New user…" title="New user" submit="Create" work={make}>
      {() => (
        <>
          <label>
            User name
            <input type="text" name="username" required autocomplete="off" />
          </label>
          <label>
            Name to show
            <input type="text" name="displayName" autocomplete="off" />
          </label>
          <label>
            Password
            <input type="password" name="password" required autocomplete="new-password" />
          </label>
          <label class="check">
            <input type="checkbox" name="admin" /> Administrator
          </label>
        </>
      )}
    </FormDialog>
  );
}

function EditUser({ one, reload }: { one: Account; reload: () => void }) {
  const save = async (fields: FormData): Promise<void> => {
    const password = String(fields.get('password'));
    await patchUser(one.id, {
      displayName: field(fields, 'displayName'),
      admin: field(fields, 'admin') === 'on',
      active: field(fields, 'active') === 'on',
      ...(password === '' ? {} : { password }),
    });
    reload();
  };
  return (
    <FormDialog label="Edit…" name={`Edit ${one.username}`} title={one.username} submit="Save" plain work={save}>
      {() => (
        <>
          <label>
            Name to show
            <input type="text" name="displayName" defaultValue={one.displayName} />
          </label>
          <label>
            New password (leave empty to keep the current one)
            <input type="password" name="password" autocomplete="new-password" />
          </label>
          <p class="quiet">A new password ends the other sessions and the access tokens of this user.</p>
          <label class="check">
            <input type="checkbox" name="admin" defaultChecked={one.admin} /> Administrator
          </label>
          <label class="check">
            <input type="checkbox" name="active" defaultChecked={one.active} /> Active: may sign in
          </label>
        </>
      )}
    </FormDialog>
  );
}

export function UsersPage() {
  useTitle('Users');
  const live = useLive('users', (signal) => users(signal), (change) => change === 'everything');
  const grants = useGrants();
  const admin = me.value?.admin ?? false;
  return (
    <>
      <div class="section-head">
        <h1>Users</h1>
        <span class="spring" />
        <a href={paths.quotas}>Quotas</a>
        {admin && <NewUser reload={live.reload} />}
      </div>
      <Loaded live={live}>
        {(all) => (
          <Table label="Users" heads={['User', 'Name', 'Roles', 'Last signed in', 'Actions']}>
            {all.map((one) => (
              <tr key={one.id}>
                <th scope="row">
                  {one.username} {!one.active && <span class="tag muted">Inactive</span>}
                </th>
                <td>{one.displayName}</td>
                <td class="reason">
                  {/* An administrator sees the roles of all users, the others only their own. */}
                  {one.admin && !admin && <span class="tag">Administrator</span>}
                  <RoleTags
                    own={(grants.data?.all ?? []).filter((grant) => grant.userId === one.id)}
                    places={grants.data?.places ?? []}
                    name={one.username}
                    shown={one.displayName}
                    may={admin}
                    reload={grants.reload}
                  />
                </td>
                <td>
                  {one.lastAuthAt ? <Time at={one.lastAuthAt} /> : 'never'}
                </td>
                <td>
                  {admin && <GiveRole people={[one]} places={grants.data?.places ?? []} reload={grants.reload} small />}
                  {admin && <EditUser one={one} reload={live.reload} />}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </>
  );
}
