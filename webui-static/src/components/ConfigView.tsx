// Configuration of an experiment: what was submitted, and on demand all values; a search shows the fields that match.
import { useSignal } from '@preact/signals';
import { flatten } from '../charts/search';
import { counted, sorted } from '../format';
import type { JsonObject } from '../wire';
import { toYaml } from '../yamlText';
import { SearchField } from './SearchField';
import { Yaml } from './Yaml';

interface Props {
  submitted: string;
  resolved: JsonObject | null | undefined; // with the defaults of the master
}

// "searcher.max_length.batches: 1000000" for each field whose path or value contains the text, in any case.
export function matching(resolved: Props['resolved'], text: string): string[] {
  const lines = [...flatten(sorted(resolved ?? {}))].map(([path, value]) => `${path}: ${toYaml(value).trimEnd()}`);
  return lines.filter((line) => line.toLowerCase().includes(text.toLowerCase()));
}

export function ConfigView({ submitted, resolved }: Props) {
  const text = useSignal('');
  const found = text.value === '' ? [] : matching(resolved, text.value);
  return (
    <div class="config-view">
      <SearchField label="Search the configuration" value={text.value} say={(to) => (text.value = to)} />
      {text.value !== '' ? (
        <Yaml title={counted(found.length, 'matching field')} text={found.join('\n')} />
      ) : (
        <>
          <Yaml title="Submitted" text={submitted} />
          <details>
            <summary>Show all defaults</summary>
            <Yaml title="With defaults" text={toYaml(sorted(resolved ?? null))} />
          </details>
        </>
      )}
    </div>
  );
}
