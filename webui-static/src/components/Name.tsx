// A name in a narrow place. It is shortened before its last characters, which tell runs of a series apart.

// Characters that stay visible, and the least length of a name that can be shortened.
const TAIL = 8;
const LEAST = 16;

export function Name({ text }: { text: string }) {
  if (text.length < LEAST) return <>{text}</>;
  const characters = [...text];
  return (
    <span class="name">
      <span>{characters.slice(0, -TAIL).join('')}</span>
      <span>{characters.slice(-TAIL).join('')}</span>
    </span>
  );
}
