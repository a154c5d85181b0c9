// Configuration templates: list, text, creation and removal.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useQuery } from '../address';
import { removeTemplate, saveTemplate, templates, type Template } from '../calls/accounts';
import { workspaces } from '../calls/places';
import { ConfigEditor } from '../components/ConfigEditor';
import { Confirm } from '../components/Confirm';
import { Loaded } from '../components/Loaded';
import { ErrorNote } from '../components/notes';
import { useDraft } from '../draft';
import { useLive } from '../live';
import { useWork } from '../work';

const FIRST_TEXT = '# Settings that experiments share.\nmax_restarts: 3\n';

function Form({ one, done }: { one: Template | undefined; done: (name: string) => void }) {
  const name = useSignal(one?.name ?? '');
  const draft = useDraft(`templates/${one?.name ?? ''}`);
  const text = draft.text ?? one?.text ?? FIRST_TEXT;
  const place = useSignal(one?.workspaceId ?? 1);
  const places = useLive('workspaces', (signal) => workspaces(signal), () => false);
  const { busy, error, run } = useWork();
  // The draft of an existing template is shown until the saved text has arrived.
  useEffect(() => {
    if (one && draft.text === one.text) draft.drop();
  });
  const save = async (): Promise<void> => {
    const template = { name: name.value.trim(), workspaceId: place.value, text };
    if (template.name === '' || !(await run(() => saveTemplate(template, one === undefined)))) return;
    if (!one) draft.drop();
    done(template.name);
  };
  return (
    <section aria-labelledby="template-title">
      <h2 id="template-title">{one?.name ?? 'New template'}</h2>
      {!one && (
        <div class="controls">
          <label class="check">
            Name <input type="text" value={name.value} onInput={(e) => (name.value = e.currentTarget.value)} />
          </label>
          <label class="check">
            Workspace
            <select value={place.value} onChange={(e) => (place.value = Number(e.currentTarget.value))}>
              {places.data?.map((where) => (
                <option key={where.id} value={where.id}>
                  {where.name}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      <ConfigEditor
        label="Template"
        text={text}
        problems={error?.problems ?? []}
        change={draft.change}
        submit={() => void save()}
      />
      {(error?.problems.length ?? 0) === 0 && <ErrorNote error={error} />}
      <div class="actions">
        <button type="button" class="primary" disabled={busy || text === one?.text} onClick={() => void save()}>
          Save
        </button>
        <button type="button" disabled={busy || draft.text === undefined} onClick={draft.drop}>
          Start over
        </button>
        <span class="spring" />
        {one && (
          <Confirm
            label="Delete…"
            title={`Delete template ${one.name}?`}
            yes="Delete"
            no="Keep it"
            work={() => removeTemplate(one.name)}
            done={() => (draft.drop(), done(''))}
          >
            Experiments that were made with it keep what they got.
          </Confirm>
        )}
      </div>
    </section>
  );
}

export function NewTemplate() {
  const { setQuery } = useQuery();
  return (
    <button type="button" onClick={() => setQuery({ template: '', new: '1' })}>
      New template…
    </button>
  );
}

export function Templates() {
  const { query, setQuery } = useQuery();
  const live = useLive('templates', (signal) => templates(signal), (change) => change === 'everything');
  const open = (name: string): void => {
    live.reload();
    setQuery({ template: name, new: '' });
  };
  return (
    <Loaded live={live}>
      {(all) => {
        const one = query.new ? undefined : (all.find((template) => template.name === query.template) ?? all[0]);
        return (
          <div class="code-page">
            <nav aria-label="Templates" class="files">
              {all.length === 0 && (
                <p class="quiet">
                  None yet. An experiment takes one by <code>det experiment create --template NAME</code>.
                </p>
              )}
              <ul class="plain-list">
                {all.map((template) => (
                  <li key={template.name}>
                    <button
                      type="button"
                      class="link"
                      aria-current={template === one ? 'true' : undefined}
                      onClick={() => setQuery({ template: template.name, new: '' })}
                    >
                      {template.name}
                    </button>
                  </li>
                ))}
              </ul>
            </nav>
            <Form key={one?.name ?? ''} one={one} done={open} />
          </div>
        );
      }}
    </Loaded>
  );
}
