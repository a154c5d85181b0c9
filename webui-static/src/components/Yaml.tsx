// YAML with colors and a button that copies it, and the configuration of an experiment.
import { useSignal } from '@preact/signals';
import { flatten } from '../charts/dimensions';
import { counted, sorted } from '../format';
import type { JsonObject } from '../wire';
import { parts, toYaml, type Part } from '../yamlText';
import { CopyButton } from './Copy';
import { SearchField } from './SearchField';

// Text in its colors.
export const Colored = ({ parts }: { parts: readonly Part[] }) => (
  <>{parts.map((part, at) => (part.kind === 'plain' ? part.text : <span key={at} class={`yaml-${part.kind}`}>{part.text}</span>))}</>
);

// The lines of a text with their colors.
export const YamlText = ({ text }: { text: string }) => (
  <>
    {text.split('\n').map((line, at) => (
      <span key={at} style={{ '--indent': line.search(/\S|$/) }}>
        <Colored parts={parts(line)} />
        {'\n'}
      </span>
    ))}
  </>
);

export const Yaml = ({ title, text }: { title: string; text: string }) => (
  <figure class="yaml">
    <figcaption>
      {title}
      <CopyButton text={text} what={`the text “${title}”`} plain />
    </figcaption>
    <pre tabIndex={0}>
      <YamlText text={text.trimEnd()} />
    </pre>
  </figure>
);

interface ConfigProps {
  submitted: string;
  resolved: JsonObject | null | undefined; // with the defaults of the master
}

// "searcher.max_length.batches: 1000000" for each field whose path or value contains the text, in any case.
export function matching(resolved: ConfigProps['resolved'], text: string): string[] {
  const lines = [...flatten(sorted(resolved ?? {}))].map(([path, value]) => `${path}: ${toYaml(value).trimEnd()}`);
  return lines.filter((line) => line.toLowerCase().includes(text.toLowerCase()));
}

// What was submitted, and on demand all values; a search shows the fields that match.
export function ConfigView({ submitted, resolved }: ConfigProps) {
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
