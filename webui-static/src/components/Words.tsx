// Owns the fields for what people call a thing: its name, its description, its labels.
interface Props {
  name?: string;
  description?: string | undefined; // undefined: it has none
  labels?: readonly string[] | undefined; // likewise
}

export const Words = ({ name, description, labels }: Props) => (
  <>
    <label>
      Name
      <input type="text" name="name" required defaultValue={name} />
    </label>
    {description !== undefined && (
      <label>
        Description
        <input type="text" name="description" defaultValue={description} />
      </label>
    )}
    {labels !== undefined && (
      <label>
        Labels, with commas between
        <input type="text" name="labels" defaultValue={labels.join(', ')} />
      </label>
    )}
  </>
);
