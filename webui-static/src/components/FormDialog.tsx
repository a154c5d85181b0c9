// A button that opens a form in a dialog. The dialog stays open until the form's action succeeds.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import type { Problem } from '../wire';
import { useWork } from '../work';
import { ApiError } from '../http';
import { ErrorNote, sentence } from './notes';

interface Props {
  label: string; // text of the button
  title: string;
  submit: string;
  name?: string; // accessible name, if the label alone is ambiguous
  plain?: boolean;
  work: (fields: FormData) => Promise<unknown>;
  children: () => ComponentChildren; // rendered while open
}

type Control = HTMLInputElement | HTMLSelectElement;

// The labeled control that a problem is about: "triggers[0].condition.regex" is the control "regex".
function controlOf(form: HTMLFormElement | null, { path }: Problem): Control | undefined {
  const found = form?.elements.namedItem(path.split('.').pop() ?? '');
  return (found instanceof HTMLInputElement || found instanceof HTMLSelectElement) && found.labels?.length ? found : undefined;
}

// Marks a control and writes the problem below it, with the label of the control without a remark in parentheses.
// Returns a function that undoes both.
function refuse(control: Control | undefined, { message }: Problem, id: string): () => void {
  const label = control?.labels?.[0];
  if (!control || !label) return () => {};
  const note = document.createElement('p');
  note.id = id;
  note.className = 'field-error';
  note.setAttribute('role', 'alert');
  note.textContent = sentence(`${label.firstChild?.textContent?.replace(/\(.*\)/, '').trim() ?? ''} ${message}`);
  label.after(note);
  control.setAttribute('aria-invalid', 'true');
  control.setAttribute('aria-describedby', id);
  control.focus();
  return () => {
    note.remove();
    control.removeAttribute('aria-invalid');
    control.removeAttribute('aria-describedby');
  };
}

export function FormDialog(props: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const open = useSignal(false);
  const id = useId();
  const { busy, error, run, clear } = useWork();
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    if (await run(() => props.work(fields))) dialog.current?.close();
  };
  useEffect(() => {
    const undo = (error?.problems ?? []).map((one, at) => refuse(controlOf(form.current, one), one, `${id}-${at}`));
    return () => undo.forEach((run) => run());
  }, [error]);
  const others = error?.problems.filter((one) => !controlOf(form.current, one)) ?? [];
  const isPlaced = error !== undefined && error.problems.length > 0 && others.length === 0;
  const show = (): void => {
    clear();
    open.value = true;
    dialog.current?.showModal();
  };
  return (
    <>
      <button type="button" class={props.plain ? 'plain' : ''} aria-label={props.name} onClick={show}>
        {props.label}
      </button>
      <dialog ref={dialog} aria-labelledby={id} onClose={() => (open.value = false)}>
        {open.value && (
          <form ref={form} class="fields" onSubmit={(event) => void submit(event)}>
            <h2 id={id}>{props.title}</h2>
            {props.children()}
            {error && !isPlaced && <ErrorNote error={new ApiError(error.status, error.message, others)} />}
            <div class="actions">
              <button type="submit" class="primary" disabled={busy}>
                {props.submit}
              </button>
              <button type="button" onClick={() => dialog.current?.close()}>
                Cancel
              </button>
            </div>
          </form>
        )}
      </dialog>
    </>
  );
}

export const field = (fields: FormData, name: string): string => String(fields.get(name) ?? '').trim();
