// A name in a narrow place. It is shortened before its last characters, which tell runs of a series apart.

// Most characters that stay visible, from the beginning of a word if one begins among them; those without such a word;
// the least length of a name that can be shortened.
const TAIL = 11;
const SHORT_TAIL = 7;
const LEAST = 16;

// The two parts of a name: one that can be shortened, and the end.
export function parted(text: string): [string, string] {
  const characters = [...text];
  if (characters.length < LEAST) return [text, ''];
  const word = characters.slice(-TAIL).findIndex((one) => /[\s_/.:-]/.test(one));
  const cut = characters.length - (word >= 0 && word < TAIL - 1 ? TAIL - word : SHORT_TAIL);
  // A space belongs to the first part: between the ellipsis and the end it would be a gap.
  const at = /\s/.test(characters[cut] ?? '') ? cut + 1 : cut;
  return [characters.slice(0, at).join(''), characters.slice(at).join('')];
}

export function Name({ text }: { text: string }) {
  const [start, end] = parted(text);
  if (end === '') return <>{text}</>;
  return (
    <span class="name">
      <span>{start}</span>
      <span>{end}</span>
    </span>
  );
}
