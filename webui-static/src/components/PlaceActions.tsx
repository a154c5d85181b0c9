// Renames, archives and deletes a workspace or a project.
import { useLocation } from 'preact-iso';
import { archivePlace, removePlace, renamePlace } from '../calls/places';
import { useWork } from '../work';
import { ActionMenu } from './ActionMenu';
import { Confirm } from './Confirm';
import { field, FormDialog } from './FormDialog';
import { ErrorNote } from './notes';
import { Words } from './Words';

interface Props {
  place: 'workspaces' | 'projects';
  one: { id: number; name: string; archived: boolean; immutable: boolean; description?: string };
  up: string; // page to open after deletion
  reload: () => void;
}

export function PlaceActions({ place, one, up, reload }: Props) {
  const { route } = useLocation();
  const { busy, error, run } = useWork();
  const what = place === 'workspaces' ? 'workspace' : 'project';
  if (one.immutable) return null;
  const save = async (fields: FormData): Promise<void> => {
    const more = one.description === undefined ? {} : { description: field(fields, 'description') };
    await renamePlace(place, one.id, { name: field(fields, 'name'), ...more });
    reload();
  };
  return (
    <ActionMenu>
      <FormDialog label="Edit…" title={`Edit ${what}`} submit="Save" work={save}>
        {() => (
          <Words name={one.name} description={one.description} />
        )}
      </FormDialog>
      <button
        type="button"
        disabled={busy}
        onClick={() => void run(() => archivePlace(place, one.id, !one.archived)).then(reload)}
      >
        {one.archived ? 'Unarchive' : 'Archive'}
      </button>
      <Confirm
        label="Delete…"
        title={`Delete ${what} ${one.name}?`}
        yes="Delete"
        no="Keep it"
        work={() => removePlace(place, one.id)}
        done={() => route(up)}
      >
        Its experiments are killed and deleted with their metrics, logs and checkpoints. This cannot be undone.
      </Confirm>
      <ErrorNote error={error} />
    </ActionMenu>
  );
}
