// A button that opens a form in a dialog. The dialog stays open until the form's action succeeds.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';
import type { Problem } from '../wire';
import { useWork } from '../work';
import { ErrorNote } from './notes';

interface Props {
  label: string; // text of the button
  title: string;
  submit: string;
  name?: string; // accessible name, if the label alone is ambiguous
  plain?: boolean;
  work: (fields: FormData) => Promise<unknown>;
  children: () => ComponentChildren; // rendered while open
}

// The control that a problem is about: "triggers[0].condition.regex" is the control "regex".
function controlOf(form: HTMLFormElement | null, { path }: Problem): HTMLInputElement | HTMLSelectElement | undefined {
  const found = form?.elements.namedItem(path.split('.').pop() ?? '');
  return found instanceof HTMLInputElement || found instanceof HTMLSelectElement ? found : undefined;
}

// The label of a control without a remark in parentheses.
const labelOf = (control: HTMLInputElement | HTMLSelectElement | undefined): string | undefined =>
  control?.labels?.[0]?.firstChild?.textContent?.replace(/\(.*\)/, '').trim();

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
    const refused = (error?.problems ?? []).map((one) => controlOf(form.current, one));
    refused.forEach((control) => control?.setAttribute('aria-invalid', 'true'));
    return () => refused.forEach((control) => control?.removeAttribute('aria-invalid'));
  }, [error]);
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
            <ErrorNote error={error} nameOf={(one) => labelOf(controlOf(form.current, one))} />
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
