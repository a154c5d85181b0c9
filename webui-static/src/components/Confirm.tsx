// A button that asks for confirmation before an irreversible action.
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { useWork } from '../work';
import { ErrorNote } from './notes';

interface Props {
  label: string; // text of the button: "Kill…"
  title: string; // the question of the dialog
  yes: string;
  no: string;
  work: () => Promise<unknown>;
  done?: () => void;
  disabled?: boolean;
  name?: string; // accessible name, if the label alone is ambiguous
  plain?: boolean;
  children: ComponentChildren; // the consequences
}

export function Confirm(props: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const id = useId();
  const { busy, error, run } = useWork();
  const sure = async (): Promise<void> => {
    dialog.current?.close();
    if (await run(props.work)) props.done?.();
  };
  // The key Enter keeps things as they are.
  const show = (): void => {
    dialog.current?.showModal();
    keep.current?.focus();
  };
  // A menu that contains the button shows the error.
  useEffect(() => {
    const menu = error && dialog.current?.closest('details');
    if (menu) menu.open = true;
  }, [error]);
  return (
    <>
      <button
        type="button"
        class={props.plain ? 'danger plain' : 'danger'}
        aria-label={props.name}
        disabled={busy || props.disabled}
        onClick={show}
      >
        {props.label}
      </button>
      <dialog ref={dialog} aria-labelledby={id}>
        <form method="dialog">
          <h2 id={id}>{props.title}</h2>
          <p>{props.children}</p>
          <div class="actions">
            <button type="button" class="danger" onClick={() => void sure()}>
              {props.yes}
            </button>
            <button type="submit" ref={keep}>
              {props.no}
            </button>
          </div>
        </form>
      </dialog>
      <ErrorNote error={error} />
    </>
  );
}
