// Access tokens, with which programs sign in. The text of a new token is shown once.
import { useSignal } from '@preact/signals';
import { makeToken, revokeToken, tokens, type Token } from '../calls/accounts';
import { Confirm } from '../components/Confirm';
import { Copy } from '../components/Copy';
import { field, FormDialog } from '../components/FormDialog';
import { Loaded } from '../components/Loaded';
import { Table } from '../components/Table';
import { dateTime } from '../format';
import { useLive } from '../live';
import { user } from '../session';

const LIFESPANS: readonly (readonly [string, string])[] = [
  ['720h', '30 days'],
  ['24h', 'a day'],
  ['2160h', '90 days'],
  ['8760h', 'a year'],
];
const REACH: readonly (readonly [string, string])[] = [
  ['', 'Everything that I may do'],
  ['Viewer', 'Look only'],
  ['Editor', 'Look and edit'],
];

function Choice({ name, label, options }: { name: string; label: string; options: typeof REACH }) {
  return (
    <label>
      {label}
      <select name={name}>
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

const Row = ({ one, others, reload }: { one: Token; others: boolean; reload: () => void }) => (
  <tr>
    <td class="number">{one.id}</td>
    <th scope="row">{one.description}</th>
    {others && <td>{one.username}</td>}
    <td>{one.role || 'same as the user'}</td>
    <td>{one.revoked ? 'revoked' : dateTime(one.expiry)}</td>
    <td>{one.lastUsedAt ? dateTime(one.lastUsedAt) : 'never'}</td>
    <td>
      {!one.revoked && (
        <Confirm
          label="Revoke…"
          name={`Revoke token ${one.id}`}
          title={`Revoke token ${one.id}?`}
          yes="Revoke"
          no="Keep it"
          plain
          work={() => revokeToken(one.id)}
          done={reload}
        >
          Programs that use it are refused from now on. This cannot be undone.
        </Confirm>
      )}
    </td>
  </tr>
);

export function Tokens() {
  const live = useLive('tokens', (signal) => tokens(signal), (change) => change === 'everything');
  const fresh = useSignal('');
  // Administrators also see the tokens of others.
  const others = live.data?.some((one) => one.username !== user.value?.username) ?? false;
  const heads = ['#ID', 'Purpose', ...(others ? ['User'] : []), 'Rights', 'Expires', 'Last used', 'Actions'];
  const make = async (fields: FormData): Promise<void> => {
    fresh.value = await makeToken(field(fields, 'description'), field(fields, 'lifespan'), field(fields, 'role'));
    live.reload();
  };
  return (
    <section class="card" aria-labelledby="tokens-title">
      <div class="section-head">
        <h2 id="tokens-title">Access tokens</h2>
        <span class="quiet">for programs, instead of a password</span>
        <span class="spring" />
        <FormDialog label="New token…" title="New access token" submit="Create" work={make}>
          {() => (
            <>
              <label>
                Purpose
                <input type="text" name="description" required />
              </label>
              <Choice name="lifespan" label="Valid for" options={LIFESPANS} />
              <Choice name="role" label="It may" options={REACH} />
            </>
          )}
        </FormDialog>
      </div>
      {fresh.value !== '' && (
        <div class="note note-wait" role="status">
          <p>Copy it now: it is not shown again.</p>
          <Copy text={fresh.value}>
            <button type="button" onClick={() => (fresh.value = '')}>
              Done
            </button>
          </Copy>
        </div>
      )}
      <Loaded live={live}>
        {(all) =>
          all.length === 0 ? (
            <p class="quiet">
              None yet. <code>det token create</code> makes one too.
            </p>
          ) : (
            <Table label="Access tokens" heads={heads}>
              {all.map((one) => (
                <Row key={one.id} one={one} others={others} reload={live.reload} />
              ))}
            </Table>
          )
        }
      </Loaded>
    </section>
  );
}
