// Notes in Markdown: display, and editing with a preview.
import { useDraft } from '../draft';
import { useWork } from '../work';
import { DiffView } from './DiffView';
import { Empty } from './Empty';
import { Markdown } from './Markdown';
import { ErrorNote } from './notes';

export interface Props {
  place: string; // of what the notes are about, for example "experiments/7"
  text: string;
  save: (text: string) => Promise<unknown>;
}

// What was saved while these notes were edited, which saving them would replace.
function Meanwhile({ from, saved, accept }: { from: string; saved: string; accept: () => void }) {
  return (
    <div class="note note-wait" role="alert">
      <p>
        These notes were saved by someone else while you edited them. Copy what you need into yours, which will replace them.{' '}
        <button type="button" onClick={accept}>
          Go on with mine
        </button>
      </p>
      <DiffView left={from} right={saved} title="Saved meanwhile" />
    </div>
  );
}

export const MarkdownNotes = (notes: Props) => <Notes key={notes.place} {...notes} />;

function Notes({ place, text, save }: Props) {
  const draft = useDraft(`${place} notes`);
  const { busy, error, run } = useWork();
  if (draft.text === undefined) {
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
          <button type="button" onClick={() => draft.begin(text)}>
            Edit notes
          </button>
        </p>
      </section>
    );
  }
  const done = async (): Promise<void> => {
    if (await run(() => save(draft.text ?? ''))) draft.drop();
  };
  const isReplaced = draft.from !== undefined && text !== draft.from && text !== draft.text;
  return (
    <section aria-label="Notes">
      {isReplaced && <Meanwhile from={draft.from ?? ''} saved={text} accept={() => draft.accept(text)} />}
      <div class="two notes-edit">
        <label>
          Notes, in Markdown
          <textarea class="source" rows={18} spellcheck value={draft.text} onInput={(e) => draft.change(e.currentTarget.value)} />
        </label>
        <div>
          <span>Preview</span>
          <div class="card">
            <Markdown text={draft.text} />
          </div>
        </div>
      </div>
      <ErrorNote error={error} />
      <div class="actions">
        <button type="button" class="primary" disabled={busy || isReplaced} onClick={() => void done()}>
          Save
        </button>
        <button type="button" disabled={busy} onClick={draft.drop}>
          Cancel
        </button>
      </div>
    </section>
  );
}
