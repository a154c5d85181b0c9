// Renders parsed Markdown as elements, so that nothing in the text can become markup.
import type { ComponentChildren } from 'preact';
import { markdown, type Block, type Inline } from '../markdown';

function draw(one: Inline, key: number): ComponentChildren {
  if (one.kind === 'text') return one.text;
  if (one.kind === 'code') return <code key={key}>{one.text}</code>;
  const inner = one.inner.map(draw);
  if (one.kind === 'strong') return <strong key={key}>{inner}</strong>;
  if (one.kind === 'emphasis') return <em key={key}>{inner}</em>;
  if (one.kind === 'struck') return <s key={key}>{inner}</s>;
  return (
    <a key={key} href={one.to} rel="noopener noreferrer nofollow" target={one.to.startsWith('/') ? undefined : '_blank'}>
      {inner}
    </a>
  );
}

function drawBlock(block: Block, key: number): ComponentChildren {
  if (block.kind === 'rule') return <hr key={key} />;
  if (block.kind === 'code') {
    return (
      <pre key={key} tabIndex={0}>
        <code>{block.text}</code>
      </pre>
    );
  }
  if (block.kind === 'quote') return <blockquote key={key}>{block.blocks.map(drawBlock)}</blockquote>;
  if (block.kind === 'paragraph') return <p key={key}>{block.inner.map(draw)}</p>;
  if (block.kind === 'table') {
    return (
      <div class="table-frame" key={key} role="region" aria-label="Table of the notes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {block.head.map((cell, at) => (
                <th scope="col" key={at}>
                  {cell.map(draw)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {block.rows.map((row, at) => (
              <tr key={at}>
                {row.map((cell, nth) => (
                  <td key={nth}>{cell.map(draw)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    );
  }
  if (block.kind === 'list') {
    const items = block.items.map((item, at) => <li key={at}>{item.map(draw)}</li>);
    return block.ordered ? <ol key={key}>{items}</ol> : <ul key={key}>{items}</ul>;
  }
  // The page itself uses the first two heading levels.
  const Heading = `h${Math.min(6, block.level + 2)}` as 'h3';
  return <Heading key={key}>{block.inner.map(draw)}</Heading>;
}

export const Markdown = ({ text }: { text: string }) => <div class="markdown">{markdown(text).map(drawBlock)}</div>;
