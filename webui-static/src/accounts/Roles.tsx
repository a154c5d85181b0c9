// Role assignments of users: display and changes.
import { assignments, roles, setRole, type Account, type Assignment } from '../calls/accounts';
import { workspaces, type Workspace } from '../calls/places';
import { field, FormDialog } from '../components/FormDialog';
import { ErrorNote } from '../components/notes';
import { useLive, type Live } from '../live';
import { useWork } from '../work';

export interface Grants {
  all: Assignment[];
  places: Workspace[];
}

export const useGrants = (): Live<Grants> =>
  useLive(
    'grants',
    async (signal) => {
      const [all, places] = await Promise.all([assignments(), workspaces(signal)]);
      return { all, places };
    },
    (change) => change === 'everything',
  );

export const placeName = (places: readonly Workspace[], id: number | undefined): string =>
  id === undefined ? 'everywhere' : `in ${places.find((one) => one.id === id)?.name ?? `workspace ${id}`}`;

export function RoleTags(props: { own: Assignment[]; places: Workspace[]; name: string; may: boolean; reload: () => void }) {
  const { busy, error, run } = useWork();
  return (
    <>
      {props.own.map((one) => {
        const text = `${one.role.name} ${placeName(props.places, one.workspaceId)}`;
        return (
          <span class="tag" key={`${one.role.roleId} ${one.workspaceId}`}>
            {text}
            {props.may && (
              <button
                type="button"
                class="plain"
                aria-label={`Take ${text} from ${props.name}`}
                disabled={busy}
                onClick={() => void run(() => setRole(false, one)).then(props.reload)}
              >
                ×
              </button>
            )}
          </span>
        );
      })}
      <ErrorNote error={error} />
    </>
  );
}

function RoleChoice() {
  const live = useLive('roles', roles, () => false);
  return (
    <label>
      Role
      <select name="role">
        {live.data?.map((role) => (
          <option key={role.roleId} value={role.roleId}>
            {role.name}
          </option>
        ))}
      </select>
    </label>
  );
}

// A dialog that gives a role to one of `people`. With `place` it applies to that workspace;
// otherwise the user chooses one.
export function GiveRole(props: { people: Account[]; places: Workspace[]; place?: number; reload: () => void; small?: boolean }) {
  const { people, places, place } = props;
  const give = async (fields: FormData): Promise<void> => {
    const where = place ?? (Number(field(fields, 'place')) || undefined);
    const role = { roleId: Number(field(fields, 'role')), name: '' };
    await setRole(true, { userId: Number(field(fields, 'user')), role, workspaceId: where });
    props.reload();
  };
  const only = people.length === 1 ? people[0] : undefined;
  return (
    <FormDialog
      label={props.small ? 'Give role…' : 'Add a member…'}
      name={props.small && only ? `Give role to ${only.username}` : undefined}
      title={only ? `Give a role to ${only.username}` : 'Add a member'}
      submit="Give"
      plain={props.small}
      work={give}
    >
      {() => (
        <>
          {only ? (
            <input type="hidden" name="user" value={only.id} />
          ) : (
            <label>
              User
              <select name="user">
                {people.map((one) => (
                  <option key={one.id} value={one.id}>
                    {one.username}
                  </option>
                ))}
              </select>
            </label>
          )}
          <RoleChoice />
          {place === undefined && (
            <label>
              Where
              <select name="place">
                <option value="0">Everywhere</option>
                {places.map((one) => (
                  <option key={one.id} value={one.id}>
                    {one.name}
                  </option>
                ))}
              </select>
            </label>
          )}
        </>
      )}
    </FormDialog>
  );
}
