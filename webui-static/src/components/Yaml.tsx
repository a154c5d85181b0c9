// YAML with colors and a button that copies it.
import { parts } from '../yamlText';

// The lines of a text with their colors.
export const YamlText = ({ text }: { text: string }) => (
  <>
    {text.split('\n').map((line, at) => (
      <span key={at}>
        {parts(line).map((part, nth) => (part.kind === 'plain' ? part.text : <span key={nth} class={`yaml-${part.kind}`}>{part.text}</span>))}
        {'\n'}
      </span>
    ))}
  </>
);

export const Yaml = ({ title, text }: { title: string; text: string }) => (
  <figure class="yaml">
    <figcaption>
      {title}
      <button type="button" class="plain" aria-label={`Copy: ${title}`} onClick={() => void navigator.clipboard?.writeText(text)}>
        Copy
      </button>
    </figcaption>
    <pre tabIndex={0}>
      <YamlText text={text.trimEnd()} />
    </pre>
  </figure>
);
