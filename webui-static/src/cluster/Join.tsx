// The command that joins an agent to the cluster. It includes a join token, which is created here and shown
// once.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { makeJoinToken } from '../calls/cluster';
import { Copy } from '../components/Copy';
import { field, FormDialog } from '../components/FormDialog';

const LIFESPANS: readonly (readonly [string, string])[] = [
  ['1h', 'an hour'],
  ['24h', 'a day'],
  ['720h', '30 days'],
];

// Without TLS the master accepts only agents of its own machine.
const master = (): string => (location.protocol === 'https:' ? `https://${location.host}` : location.host);

// A shell command. Tokens need no quoting: they consist of letters, digits, "_", "-" and ".".
const commandWith = (token: string): string =>
  `(umask 077; echo ${token} > join-token)\ndet-agent --master ${master()} --join-token-file join-token`;

function WithToken() {
  const fresh = useSignal('');
  const make = async (fields: FormData): Promise<void> => {
    fresh.value = await makeJoinToken(field(fields, 'pool'), Number(field(fields, 'uses')), field(fields, 'lifespan'));
  };
  return (
    <>
      <p>An agent joins with a token, which it exchanges for an identity of its own.</p>
      {fresh.value === '' ? (
        <FormDialog label="Make a join token…" title="New join token" submit="Make" work={make}>
          {() => (
            <>
              <label>
                Agents that may use it
                <input type="number" name="uses" min="1" max="1000" required defaultValue="1" />
              </label>
              <label>
                Valid for
                <select name="lifespan">
                  {LIFESPANS.map(([value, text]) => (
                    <option key={value} value={value}>
                      {text}
                    </option>
                  ))}
                </select>
              </label>
              <label>
                Their resource pool (optional; replaces the one that they name)
                <input type="text" name="pool" />
              </label>
            </>
          )}
        </FormDialog>
      ) : (
        <div class="note note-wait" role="status">
          <p>Copy it now: the token is not shown again.</p>
          <Copy text={commandWith(fresh.value)}>
            <button type="button" onClick={() => (fresh.value = '')}>
              Done
            </button>
          </Copy>
        </div>
      )}
      <p class="quiet">
        <code>det join-token list</code> lists the valid tokens.
      </p>
    </>
  );
}

// `open`: unfolded at first.
export function Join({ open }: { open: boolean }) {
  const first = useRef(open);
  return (
    <details class="join" open={first.current}>
      <summary>Add an agent…</summary>
      {location.protocol === 'https:' ? null : <p>Without TLS, only agents on the master's machine can join.</p>}
      <WithToken />
    </details>
  );
}
