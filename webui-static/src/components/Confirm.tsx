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
  const id = useId();
  const { busy, error, run } = useWork();
  const sure = async (): Promise<void> => {
    if (await run(props.work)) props.done?.();
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
        onClick={() => dialog.current?.showModal()}
      >
        {props.label}
      </button>
      <dialog ref={dialog} aria-labelledby={id}>
        <form method="dialog">
          <h2 id={id}>{props.title}</h2>
          <p>{props.children}</p>
          <div class="actions">
            <button type="submit">{props.no}</button>
            <button type="submit" class="danger" onClick={() => void sure()}>
              {props.yes}
            </button>
          </div>
        </form>
      </dialog>
      <ErrorNote error={error} />
    </>
  );
}
