// Owns the button that asks before it does what cannot be undone.
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { useWork } from '../work';
import { ErrorNote } from './notes';

interface Props {
  label: string; // of the button that opens it: "Kill…"
  title: string; // the question
  yes: string;
  no: string;
  work: () => Promise<unknown>;
  done?: () => void;
  disabled?: boolean;
  name?: string; // of the button, where the label alone does not say it
  plain?: boolean;
  children: ComponentChildren; // what follows from it
}

export function Confirm(props: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const { busy, error, run } = useWork();
  const sure = async (): Promise<void> => {
    if (await run(props.work)) props.done?.();
  };
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
