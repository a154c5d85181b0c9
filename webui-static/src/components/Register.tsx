// Registers a checkpoint as a version of a model.
import { models, register } from '../calls/models';
import { useLive } from '../live';
import { field, FormDialog } from './FormDialog';
import { ErrorNote } from './notes';

function Choice() {
  const live = useLive('models to register', (signal) => models(false, signal), () => false);
  return (
    <>
      <label>
        Model
        <select name="model" required>
          {live.data?.map((one) => (
            <option key={one.id}>{one.name}</option>
          ))}
        </select>
      </label>
      {live.data?.length === 0 && (
        <p class="quiet">
          No models yet: make one on the page of models, or by <code>det model create NAME</code>.
        </p>
      )}
      <ErrorNote error={live.error} />
    </>
  );
}

export function Register({ uuid }: { uuid: string }) {
  const save = (fields: FormData): Promise<unknown> =>
    register(field(fields, 'model'), uuid, field(fields, 'name'), field(fields, 'comment'));
  return (
    <FormDialog
      label="Register…"
      name={`Register checkpoint ${uuid}`}
      title="Register as a version of a model"
      submit="Register"
      work={save}
    >
      {() => (
        <>
          <Choice />
          <label>
            Name of the version
            <input type="text" name="name" />
          </label>
          <label>
            Comment
            <input type="text" name="comment" />
          </label>
        </>
      )}
    </FormDialog>
  );
}
