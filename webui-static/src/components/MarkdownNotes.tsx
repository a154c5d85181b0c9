// Notes in Markdown: display, and editing with a preview.
import { useSignal } from '@preact/signals';
import { useWork } from '../work';
import { Empty } from './Empty';
import { Markdown } from './Markdown';
import { ErrorNote } from './notes';

export function MarkdownNotes({ text, save }: { text: string; save: (text: string) => Promise<unknown> }) {
  const draft = useSignal<string | undefined>(undefined);
  const { busy, error, run } = useWork();
  if (draft.value === undefined) {
    return (
      <section class="notes" aria-label="Notes">
        {text.trim() === '' ? (
          <Empty icon="notes" title="No notes yet">
            Notes are Markdown: what was tried here, and what came of it.
          </Empty>
        ) : (
          <Markdown text={text} />
        )}
        <p class={text.trim() === '' ? 'below-empty' : 'at-top'}>
          <button type="button" onClick={() => (draft.value = text)}>
            Edit notes
          </button>
        </p>
      </section>
    );
  }
  const done = async (): Promise<void> => {
    if (await run(() => save(draft.value ?? ''))) draft.value = undefined;
  };
  return (
    <section aria-label="Notes">
      <div class="two notes-edit">
        <label>
          Notes, in Markdown
          <textarea class="source" rows={18} spellcheck value={draft.value} onInput={(e) => (draft.value = e.currentTarget.value)} />
        </label>
        <div>
          <span>Preview</span>
          <div class="card">
            <Markdown text={draft.value} />
          </div>
        </div>
      </div>
      <ErrorNote error={error} />
      <div class="actions">
        <button type="button" class="primary" disabled={busy} onClick={() => void done()}>
          Save
        </button>
        <button type="button" disabled={busy} onClick={() => (draft.value = undefined)}>
          Cancel
        </button>
      </div>
    </section>
  );
}
