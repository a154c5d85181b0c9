// The submitted code of an experiment: its file tree and the selected file as text.
import { Fragment } from 'preact';
import { codeOf } from '../code';
import { bytes } from '../format';
import { useLive } from '../live';
import { asText, type CodeFile } from '../tar';
import { colored, inLines } from '../syntax';
import type { Part } from '../yamlText';
import { useAbove } from './above';
import { CopyButton } from './Copy';
import { Empty } from './Empty';
import { Files } from './Files';
import { Loaded } from './Loaded';
import { Colored } from './Yaml';

// Longer files are truncated.
const MAX_LINES = 20000;
// Longer files have no colors: every part is an element of the page.
const MAX_COLORED = 100_000;

// Lines with their numbers, which are not part of the text.
const Lines = ({ parts }: { parts: readonly Part[] }) => (
  <>
    {inLines(parts).map((line, at) => (
      <Fragment key={at}>
        {at > 0 && '\n'}
        <span class="code-line">
          <Colored parts={line} />
        </span>
      </Fragment>
    ))}
  </>
);

function FileView({ file }: { file: CodeFile }) {
  const host = useAbove(file.path);
  const text = asText(file.bytes);
  if (text === undefined) return <p class="quiet">{file.path} is not text ({bytes(file.bytes.length)}).</p>;
  const lines = text.replace(/\n$/, '').split('\n');
  const shown = lines.slice(0, MAX_LINES);
  const body = shown.join('\n');
  return (
    <figure class="code">
      <figcaption>
        {file.path} <span class="quiet">{bytes(file.bytes.length)}</span>{' '}
        <CopyButton text={text} what="this file" plain />
      </figcaption>
      <div ref={host} class="code-body" tabIndex={0} role="region" aria-label={`Content of ${file.path}`}>
        <pre class="code-text" style={{ '--digits': String(shown.length).length }}>
          <Lines parts={body.length > MAX_COLORED ? [{ kind: 'plain', text: body }] : colored(file.path, body)} />
        </pre>
      </div>
      {lines.length > MAX_LINES && <p class="quiet">… and {lines.length - MAX_LINES} more lines.</p>}
    </figure>
  );
}

// Files of programs, and of configurations.
const SOURCE = /\.(py|cc|cpp|cu|mjs|js|rs|sh)$/;
const CONFIG = /\.ya?ml$/;

// "train" of "src/train.py", of the module "src.train" and of the program "build/train".
const stem = (name: string): string => name.replace(SOURCE, '').replace(/^.*[./]/, '');

// The file to show first: the source of the entrypoint in a configuration, or else the first source.
export function mainFile(files: readonly CodeFile[]): CodeFile | undefined {
  const texts = files.filter(({ path }) => CONFIG.test(path)).map((file) => asText(file.bytes) ?? '');
  const words = texts.flatMap((text) => /^entrypoint:.*(\n[ \t-].*)*/m.exec(text)?.[0].split(/[\s:"',[\]]+/) ?? []);
  const names = new Set(words.map(stem));
  const sources = files.filter(({ path }) => SOURCE.test(path));
  return sources.find(({ path }) => names.has(stem(path))) ?? sources[0];
}

function FilesOf({ all }: { all: readonly CodeFile[] }) {
  const files = [...all].sort((a, b) => a.path.localeCompare(b.path));
  return (
    <Files files={files} first={mainFile(files)} note={(file) => <span class="quiet">{bytes(file.bytes.length)}</span>}>
      {(file) => <FileView key={file.path} file={file} />}
    </Files>
  );
}

export function CodeView({ experimentId }: { experimentId: number }) {
  const live = useLive(
    `code ${experimentId}`,
    (signal) => codeOf(experimentId, signal),
    () => false,
  );
  return (
    <Loaded live={live}>
      {(all) =>
        all.length === 0 ? (
          <Empty icon="notes" title="No code">
            This experiment was submitted without a folder of code.
          </Empty>
        ) : (
          <FilesOf all={all} />
        )
      }
    </Loaded>
  );
}
