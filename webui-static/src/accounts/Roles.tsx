// Role assignments of users: display and changes.
import { assignments, roles, setRole, type Account, type Assignment } from '../calls/accounts';
import { workspaces, type Workspace } from '../calls/places';
import { Confirm } from '../components/Confirm';
import { field, FormDialog } from '../components/FormDialog';
import { useLive, type Live } from '../live';

interface Grants {
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

// "ClusterAdmin" → "Cluster admin".
const roleName = (name: string): string => name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const placeName = (places: readonly Workspace[], id: number | undefined): string =>
  id === undefined ? 'everywhere' : `in ${places.find((one) => one.id === id)?.name ?? `workspace ${id}`}`;

// On the page of a workspace, `here`, its own roles have no place, and roles of the whole cluster cannot be removed.
export function RoleTags(props: {
  own: Assignment[];
  places: Workspace[];
  name: string; // user name
  shown?: string; // display name
  may: boolean;
  here?: number;
  reload: () => void;
}) {
  const { here, name } = props;
  const full = props.shown && props.shown !== name ? `${name} (${props.shown})` : name;
  return (
    <>
      {props.own.map((one) => {
        const place = here !== undefined && one.workspaceId === here ? '' : ` ${placeName(props.places, one.workspaceId)}`;
        const text = `${roleName(one.role.name)}${place}`;
        return (
          <span class="tag role" key={`${one.role.roleId} ${one.workspaceId}`}>
            <span title={text}>{text}</span>
            {props.may && (here === undefined || one.workspaceId === here) && (
              <Confirm
                label="×"
                name={`Remove ${text} from ${name}`}
                title={`Remove ${roleName(one.role.name)} from ${full}?`}
                yes="Remove"
                no="Keep it"
                plain
                work={() => setRole(false, one)}
                done={props.reload}
              >
                {full} loses the role {text} at once.
              </Confirm>
            )}
          </span>
        );
      })}
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
            {roleName(role.name)}
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
