// YAML with colors and a button that copies it.
import { parts } from '../yamlText';

export const Yaml = ({ title, text }: { title: string; text: string }) => (
  <figure class="yaml">
    <figcaption>
      {title}
      <button type="button" class="plain" aria-label={`Copy: ${title}`} onClick={() => void navigator.clipboard?.writeText(text)}>
        Copy
      </button>
    </figcaption>
    <pre tabIndex={0}>
      {text.split('\n').map((line, at) => (
        <span key={at}>
          {parts(line).map((part, nth) => (part.kind === 'plain' ? part.text : <span key={nth} class={`yaml-${part.kind}`}>{part.text}</span>))}
          {'\n'}
        </span>
      ))}
    </pre>
  </figure>
);
