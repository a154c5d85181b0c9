// Parts of source text to color: comments, strings, numbers, keywords. Small lexers, not parsers. Pure.
import { parts as yamlParts, type Part } from './yamlText';

interface Language {
  keywords: ReadonlySet<string>;
  // Patterns at the current position, in order. Multi-line comments and strings are one part.
  patterns: readonly [Part['kind'], RegExp][];
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));
const NUMBER: [Part['kind'], RegExp] = ['number', /(?:0[xb][\da-f_']+|(?:\d[\d_']*\.?[\d_']*|\.\d+)(?:e[+-]?\d+)?)[a-z]*/iy];
const STRING = /"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?/y;
const BLOCK = /\/\*[\s\S]*?(?:\*\/|$)|\/\/[^\n]*/y;
const HASH = /#[^\n]*/y;
const WORD = /[A-Za-z_$][\w$]*/y;
const SPACE = /\s+/y;

const CPP: Language = {
  keywords: words(
    'alignas alignof auto bool break case catch char class co_await co_return co_yield concept const consteval constexpr constinit const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false final float for friend goto if inline int long mutable namespace new noexcept nullptr operator override private protected public reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this throw true try typedef typename union unsigned using virtual void volatile while',
  ),
  patterns: [
    ['comment', BLOCK],
    ['word', /#[ \t]*\w+/y],
    ['string', /R"([^(\s]*)\([\s\S]*?(?:\)\1"|$)/y],
    ['string', STRING],
    NUMBER,
  ],
};
const PYTHON: Language = {
  keywords: words(
    'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield self',
  ),
  patterns: [['comment', HASH], ['string', /[rbuf]{0,2}("""|''')[\s\S]*?(?:\1|$)/iy], ['string', /[rbuf]{0,2}(?:"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/iy], NUMBER],
};
const SCRIPT: Language = {
  keywords: words(
    'async await break case catch class const continue default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield',
  ),
  patterns: [['comment', BLOCK], ['string', /`(?:\\.|[^`\\])*`?/y], ['string', STRING], NUMBER],
};
const SHELL: Language = {
  keywords: words('case do done elif else esac exit export fi for function if in local return set then until while'),
  patterns: [['comment', HASH], ['string', /'[^']*'?|"(?:\\.|[^"\\])*"?/y], NUMBER],
};
const CMAKE: Language = { keywords: words('if else elseif endif foreach endforeach function endfunction set include'), patterns: [['comment', HASH], ['string', STRING], NUMBER] };

// By the end of a file's name.
const ENDS: readonly [Language, readonly string[]][] = [
  [CPP, ['c', 'cc', 'cpp', 'cu', 'cuh', 'cxx', 'h', 'hh', 'hpp']],
  [PYTHON, ['py']],
  [SCRIPT, ['js', 'mjs', 'ts', 'tsx', 'json']],
  [SHELL, ['sh', 'bash', 'dockerfile']],
  [CMAKE, ['cmake']],
];

function lex(text: string, { keywords, patterns }: Language): Part[] {
  const out: Part[] = [];
  const add = (kind: Part['kind'], own: string): void => {
    const last = out[out.length - 1];
    if (kind === 'plain' && last?.kind === 'plain') last.text += own;
    else out.push({ kind, text: own });
  };
  const at = (pattern: RegExp, place: number): string => {
    pattern.lastIndex = place;
    return pattern.exec(text)?.[0] ?? '';
  };
  for (let place = 0; place < text.length; ) {
    const found = patterns.map(([kind, pattern]) => [kind, at(pattern, place)] as const).find(([, own]) => own !== '');
    // A word is read after the patterns: r"…" is a string, and a number never starts inside a word.
    const name = at(WORD, place);
    const space = at(SPACE, place);
    const [kind, own]: readonly [Part['kind'], string] =
      space !== '' ? ['plain', space] : (found ?? (name !== '' ? [keywords.has(name) ? 'key' : 'plain', name] : ['plain', text[place] ?? '']));
    add(kind, own);
    place += own.length;
  }
  return out;
}

// The parts of a file's text, by the end of its name. Texts together are the text; an unknown language is one part.
export function colored(path: string, text: string): Part[] {
  const name = path.toLowerCase().split('/').pop() ?? '';
  const end = name === 'cmakelists.txt' ? 'cmake' : (name.split('.').pop() ?? '');
  if (end === 'yaml' || end === 'yml') return text.split('\n').flatMap((line, at) => [...(at > 0 ? [{ kind: 'plain', text: '\n' } as Part] : []), ...yamlParts(line)]);
  const language = ENDS.find(([, ends]) => ends.includes(end))?.[0];
  return language ? lex(text, language) : [{ kind: 'plain', text }];
}

// The parts of each line: a comment or a string may have several.
export function inLines(all: readonly Part[]): Part[][] {
  const lines: Part[][] = [[]];
  for (const { kind, text } of all)
    for (const [at, own] of text.split('\n').entries()) {
      if (at > 0) lines.push([]);
      if (own !== '') lines[lines.length - 1]?.push({ kind, text: own });
    }
  return lines;
}
